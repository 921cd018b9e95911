"""Why an API's response is no result: a reason by its status. Pure: no I/O.

1. 401, 403 and 407: the operator's credentials were not accepted; the caller can do nothing about it.
2. 404 and 410: nothing is where the arguments point.
3. 429 and 5xx: the API failed, and may not fail the next time. So may 408 and 425, but only the caller knows.
4. Any other 4xx: the API rejected the request, and its JSON says why. That is data for the caller, unless the
   operator keeps it: never part of a message or a record.
5. Everything else: an answer that cannot be used.

Beyond that JSON, nothing that the API sent is passed on.
"""

from __future__ import annotations

from typing import Final

from portbook.errors import Failed, Reason, Refused
from portbook.net.http_connection import Response, TooLarge
from portbook.tools.media_types import is_json
from portbook.wire.parsing import parse

__all__ = ["failure_of_oversize", "failure_of_status", "upstream_failed"]

_DENIED: Final = frozenset({401, 403, 407})
_NOT_FOUND: Final = frozenset({404, 410})
_UNTIMELY: Final = frozenset({408, 425, 429})
_CONFLICTS: Final = frozenset({409, 412})
_TOO_MANY: Final = 429
# As much as explains an error: problem documents (RFC 9457) have a few hundred bytes.
_MAX_BODY_BYTES: Final = 16_384


def upstream_failed(happened: str, status: int | None = None, *, is_retryable: bool = False) -> Failed:
    """Return the failure of a call that the API caused; `happened` quotes nothing that it sent."""
    details = None if status is None else {"upstream_status": status}
    return Failed(Reason.UPSTREAM_ERROR, happened=happened, details=details, is_retryable=is_retryable)


def failure_of_oversize(error: TooLarge, *, gives_body: bool) -> Failed:
    """Return the failure of a call whose response is too large to be read: its status says the rest."""
    if 200 <= error.status < 300:
        return upstream_failed(str(error), error.status)
    failure = failure_of_status(Response(error.status, {}, b""), gives_body=False)
    if failure.reason is Reason.UPSTREAM_REJECTED and gives_body:
        failure.details = {**failure.details, **_left_out("larger than the limit for answers")}
    return failure


def failure_of_status(response: Response, *, gives_body: bool) -> Failed:
    """Return the failure of a call whose response has a status other than 2xx.

    Where the operator `gives_body`, the JSON with which a request was rejected is among its details.
    """
    status = response.status
    happened, details = f"the answer has the status {status}", {"upstream_status": status}
    if status in _DENIED:
        return Failed(Reason.UPSTREAM_DENIED, happened=happened, details=details)
    if status in _NOT_FOUND:
        return Failed(Reason.UPSTREAM_NOT_FOUND, happened=happened, details=details)
    if 400 <= status < 500 and status not in _UNTIMELY:
        if status in _CONFLICTS:
            happened = f"{happened}, a conflict with the present state"
        told = {**details, **_explanation(response)} if gives_body else details
        return Failed(Reason.UPSTREAM_REJECTED, happened=happened, details=told)
    # A server error may be temporary.
    return upstream_failed(happened, status, is_retryable=status >= 500 or status == _TOO_MANY)


def _explanation(response: Response) -> dict[str, object]:
    """Return the JSON of a response as a detail, or why it is left out; nothing where there is none."""
    headers = response.headers
    content_type = headers.get(b"content-type", b"").decode("latin-1")
    is_plain = headers.get(b"content-encoding", b"identity").strip().lower() == b"identity"
    if not response.body:
        return {}
    if len(response.body) > _MAX_BODY_BYTES:
        return _left_out(f"larger than {_MAX_BODY_BYTES} bytes")
    if not is_json(content_type) or not is_plain:
        return _left_out("not plain JSON")
    try:
        return {"upstream_body": parse(response.body)}
    except Refused:
        return _left_out("not strict JSON")


def _left_out(why: str) -> dict[str, object]:
    return {"upstream_body_left_out": why}
