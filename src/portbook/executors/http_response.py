"""Converts an API's response to a tool's result, or to a failure. Pure: no I/O.

An error holds the status of the response, and nothing else that the API sent. A result is a body with a 2xx
status and the content type of the operation; JSON is parsed as strictly as a caller's.
"""

from __future__ import annotations

from typing import Final

from portbook.errors import Failed, Reason, Refused
from portbook.model import JSON
from portbook.net.http_connection import Response
from portbook.tools.operation import HttpOperation
from portbook.wire.parsing import parse

__all__ = ["result_of", "retry_after_s", "upstream_failed"]

_OK: Final = range(200, 300)
_TOO_MANY: Final = 429
_JSON: Final = "application/json"


def upstream_failed(happened: str, status: int | None = None, *, is_retryable: bool = False) -> Failed:
    """Return the failure of a call that the API caused; `happened` quotes nothing that it sent."""
    details = None if status is None else {"upstream_status": status}
    return Failed(Reason.UPSTREAM_ERROR, happened=happened, details=details, is_retryable=is_retryable)


def result_of(response: Response, operation: HttpOperation) -> JSON:
    """Return the result in a 2xx response: JSON, or text where the operation has a different type.

    An operation that reads its responses itself decides alone.

    Raises `Failed` where the status is not 2xx, the content type differs, or the body is compressed or does
    not match its type.
    """
    status, content_type = response.status, operation.response
    if operation.read is not None:
        return operation.read(status, response.body)
    if status not in _OK:
        # A server error may be temporary; a refused request would be refused again.
        may_pass = status >= 500 or status == _TOO_MANY
        raise upstream_failed(f"the answer has the status {status}", status, is_retryable=may_pass)
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
