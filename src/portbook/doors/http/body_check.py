"""Whether the body of a request is declared as what is read here: JSON in UTF-8, as it is. Pure: no I/O.

It also has what becomes of bodies that nobody wants, or that never come to their end.
"""

from __future__ import annotations

from typing import Final

from portbook.doors.http.request import RequestHead
from portbook.errors import Reason, Refused
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES

__all__ = ["MAX_DISCARDED_BYTES", "cut_off", "refuse_content"]

_JSON: Final = b"application/json"
_IDENTITY: Final = b"identity"
_UTF_8: Final = (b"utf-8", b"utf8")


def refuse_content(head: RequestHead) -> Refused | None:
    """Return the refusal of a body that is declared as something else, None if it may be read."""
    fields = head.fields
    media, *parameters = fields.get(b"content-type", b"").split(b";")
    if media.strip().lower() != _JSON:
        return Refused(Reason.NOT_JSON_CONTENT)
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name.strip().lower() == b"charset" and value.strip().strip(b'"').lower() not in _UTF_8:
            return _refused("JSON is read in UTF-8. Omit the charset.")
    if fields.get(b"content-encoding", _IDENTITY).lower() != _IDENTITY:
        return _refused("A compressed body is not read. Send it without Content-Encoding.")
    return None


def _refused(hint: str) -> Refused:
    return Refused(Reason.NOT_JSON_CONTENT, details={"hint": hint})


# A body that nobody wants is read and discarded, so that the client gets the answer; up to this many bytes.
MAX_DISCARDED_BYTES: Final = 128 * MAX_FRAME_BYTES


def cut_off() -> Refused:
    """Return the refusal of a message whose end never came."""
    return Refused(Reason.CANCELLED, note="the client left in the middle of its message")
