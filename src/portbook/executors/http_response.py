"""From an API's response to a tool's result, or to the reason why there is none. Pure: no I/O.

Nothing that the API sent is ever part of an error: only its status is. A result is what it sent with a 2xx
status and in the content type that the operation names; JSON is read as strictly as a caller's.
"""

from __future__ import annotations

from typing import Final

from portbook.errors import Failed, Reason, Refused
from portbook.model import JSON
from portbook.net.http_connection import Response
from portbook.wire.parsing import parse

__all__ = ["REDIRECTS", "failure_of", "result_of", "retry_after_s", "upstream_failed"]

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OK: Final = range(200, 300)
_TOO_MANY: Final = 429
_JSON: Final = "application/json"


def failure_of(response: Response) -> Failed | None:
    """Return how a call ends whose response has this status, or None where there may be a result."""
    status = response.status
    if status in _OK:
        return None
    # The server's own trouble may pass; what it refused it will refuse again.
    return upstream_failed(f"status {status}", status, is_retryable=status >= 500 or status == _TOO_MANY)


def upstream_failed(note: str, status: int | None = None, *, is_retryable: bool = False) -> Failed:
    """Return the ending of a call for which the API is to blame; `note` is for the record."""
    details = None if status is None else {"upstream_status": status}
    return Failed(Reason.UPSTREAM_ERROR, note=note, details=details, is_retryable=is_retryable)


def result_of(response: Response, content_type: str) -> JSON:
    """Return the result that a 2xx response holds: JSON, or text where the operation says so.

    Raises `Failed` where it is of another content type, encoded, or not what its type says.
    """
    if not response.body:
        return None
    status = response.status
    if response.headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise upstream_failed("the answer is compressed, which was not asked for", status)
    sent = response.headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if sent != content_type and not (_is_json(content_type) and _is_json(sent)):
        raise upstream_failed("the answer has another content type than the operation", status)
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
    """Return how long the server asks to wait; 0 where it does not say, None where it says so as a date."""
    asked = response.headers.get(b"retry-after")
    if asked is None:
        return 0.0
    return float(asked) if asked.isdigit() and len(asked) < 10 else None


def _is_json(content_type: str) -> bool:
    return content_type == _JSON or (
        content_type.startswith("application/") and content_type.endswith("+json")
    )
