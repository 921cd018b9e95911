"""Converts an API's response to a tool's result, or to a failure. Pure: no I/O.

A result is a body with a 2xx status and a content type of the operation; JSON is parsed as strictly as a
caller's.
"""

from __future__ import annotations

from typing import Final

from portbook.errors import Refused
from portbook.executors.upstream_errors import failure_of_status, upstream_failed
from portbook.model import JSON
from portbook.net.http_connection import Response
from portbook.tools.operation import HttpOperation
from portbook.wire.parsing import parse

__all__ = ["result_of", "retry_after_s"]

_OK: Final = range(200, 300)
_JSON: Final = "application/json"


def result_of(response: Response, operation: HttpOperation, *, gives_error_body: bool = True) -> JSON:
    """Return the result in a 2xx response: JSON, or text where the operation has a different type.

    An operation that reads its responses itself decides alone.

    Raises `Failed` where the status is not 2xx, the content type differs, or the body is compressed or does
    not match its type.
    """
    status, content_type = response.status, operation.response
    if operation.read is not None:
        return operation.read(status, response.body)
    if status not in _OK:
        raise failure_of_status(response, gives_body=gives_error_body)
    if not response.body:
        return None
    if response.headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise upstream_failed("the answer is compressed, although identity encoding was requested", status)
    sent = response.headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if sent != content_type and not (_is_json(content_type) and _is_json(sent)):
        raise upstream_failed("the content type of the answer is not that of the operation", status)
    if not _is_json(content_type):
        try:
            return response.body.decode("utf-8")
        except UnicodeDecodeError:
            raise upstream_failed("the answer is not UTF-8", status) from None
    try:
        return parse(response.body)
    except Refused:
        raise upstream_failed("the answer is not strict JSON", status) from None


def retry_after_s(response: Response) -> float | None:
    """Return the server's `Retry-After` in seconds; 0 where there is none, None where it is not a number."""
    asked = response.headers.get(b"retry-after")
    if asked is None:
        return 0.0
    return float(asked) if asked.isdigit() and len(asked) < 10 else None


def _is_json(content_type: str) -> bool:
    return content_type == _JSON or (
        content_type.startswith("application/") and content_type.endswith("+json")
    )
