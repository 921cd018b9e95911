"""How large the body of a request may be, and how long a body may take on its way in or out."""

from __future__ import annotations

from typing import Final

from portbook.errors import Reason, Refused
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES

__all__ = ["BODY_SECONDS", "MAX_DISCARDED_BYTES", "WRITE_SECONDS", "cut_off"]

# A message is at most a mebibyte: a client that needs longer than this holds up a connection and a shutdown.
BODY_SECONDS: Final = 15.0

# How long a client may read nothing while there is much to write.
WRITE_SECONDS: Final = 30.0

# A body that nobody wants is read and discarded, so that the client gets the answer; up to this many bytes.
MAX_DISCARDED_BYTES: Final = 128 * MAX_FRAME_BYTES


def cut_off() -> Refused:
    """Return the refusal of a message whose end never came."""
    return Refused(Reason.CANCELLED, note="the client left in the middle of its message")
