"""The HTTP status of an MCP error, by revision. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.errors import Ending, Reason, Stage
from portbook.protocol.revisions_and_methods import Revision

__all__ = ["status_of"]

# The stages before the tool is looked up.
_EARLY: Final = (Stage.FRAME, Stage.PARSE, Stage.CLASSIFY, Stage.READ)

_ALWAYS: Final = (Reason.UNAUTHORIZED, Reason.UNSUPPORTED_REVISION, Reason.HEADER_MISMATCH)


def status_of(ending: Ending, revision: Revision | None) -> int:
    """Return the HTTP status of an error.

    1. Without a valid key it is 401, in every revision, and 400 for wrong headers.
    2. An unreadable message, or one in no revision, has its reason's own status.
    3. Clients of the handshake era read errors only with status 200.
    4. Later clients expect 404 for an unknown method, and 400 for a mistake in the request.
    """
    row = ending.row
    if ending.reason in _ALWAYS:
        return row.http
    if revision is None or row.stage in (Stage.FRAME, Stage.PARSE):
        return row.http
    if revision.has_handshake:
        return 200
    if row.stage in _EARLY or ending.reason is Reason.MISSING_CAPABILITY:
        return row.http
    return 200
