"""Converts an API's response to a tool's result, or to a failure. Pure: no I/O.

A result is a body with a 2xx status and a content type of the operation; JSON is parsed as strictly as a
caller's.
"""

from __future__ import annotations

from typing import Final

from portbook.executors.decoded_body import NotDecoded, content_of, json_of_body, value_of_body
from portbook.executors.http_errors import failure_of_status, upstream_failed
from portbook.executors.link_header import links_of
from portbook.model import JSON, ApiAnswer
from portbook.net.http_connection import Response
from portbook.tools.media_types import BINARY_TYPE, essence, is_json
from portbook.tools.operation import HttpOperation

__all__ = ["answer_beside", "result_of", "retry_after_s"]

_OK: Final = range(200, 300)
_PLAIN: Final = ApiAnswer(200)
# As servers write it; every other way is read, too, in more steps.
_JSON_TYPES: Final = frozenset(
    {
        b"application/json",
        b"application/json; charset=utf-8",
        b"application/json;charset=utf-8",
        b"application/json; charset=UTF-8",
        b"application/json;charset=UTF-8",
    }
)


def result_of(response: Response, operation: HttpOperation, *, gives_error_body: bool = True) -> JSON:
    """Return the result in a 2xx response: JSON, text or content, as the operation has it.

    An operation that reads its responses itself decides alone.

    Raises `Failed` where the status is not 2xx, the content type differs, or the body is compressed or does
    not match its type.
    """
    status, headers, body = response
    if operation.read is not None:
        return operation.read(status, body)
    if status not in _OK:
        raise failure_of_status(response, gives_body=gives_error_body)
    if not body:
        return [] if operation.gives_content else None
    coding, given = headers.get(b"content-encoding"), headers.get(b"content-type", b"")
    if coding is not None and coding.strip().lower() != b"identity":
        raise upstream_failed("the answer is compressed, although identity encoding was requested", status)
    try:
        if given in _JSON_TYPES and operation.takes_json:  # nearly every answer
            return json_of_body(body)
        # RFC 9110, 8.3: data without a type may be any.
        sent = given.decode("latin-1") or BINARY_TYPE
        if not operation.accepts(essence(sent)):
            raise upstream_failed("the content type of the answer is not that of the operation", status)
        if operation.gives_content:
            return content_of(body, sent)
        may_be_binary = not is_json(sent) and operation.accepts(BINARY_TYPE)
        return value_of_body(body, sent, may_be_binary=may_be_binary)
    except NotDecoded as why:
        raise upstream_failed(str(why), status) from None


def answer_beside(response: Response, operation: HttpOperation) -> ApiAnswer:
    """Return what a response says beside its body, without credentials."""
    link = response.headers.get(b"link")
    if link is None:
        return _PLAIN if response.status == _PLAIN.status else ApiAnswer(response.status)
    names = {use.name for use in operation.credentials if use.place == "query"}
    return ApiAnswer(response.status, links_of(link.decode("latin-1"), names))


def retry_after_s(response: Response) -> float | None:
    """Return the server's `Retry-After` in seconds; 0 where there is none, None where it is not a number."""
    asked = response.headers.get(b"retry-after")
    if asked is None:
        return 0.0
    return float(asked) if asked.isdigit() and len(asked) < 10 else None
