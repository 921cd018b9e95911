"""What differs between the revisions of MCP, as one table. Pure: no I/O.

A trait that a revision has or lacks is a column here, so that no other module compares dates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["HANDSHAKE_REVISIONS", "NEWEST_HANDSHAKE", "REVISIONS", "STATELESS_REVISIONS", "Revision"]


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of the protocol."""

    name: str
    has_handshake: bool
    """Begins with `initialize`; otherwise each request names its revision."""
    has_batches: bool
    """A JSON array of messages is accepted, as this revision demands."""
    has_annotations: bool
    """Tools say what effect they have."""
    has_structured_content: bool
    """Tools have an `outputSchema`, results a `structuredContent`."""
    wants_objects: bool
    """Both of these must be objects; anything else is wrapped as `{"result": …}`."""
    may_omit_id: bool
    """An error whose request is unknown leaves its id out; before, JSON-RPC's null stands there."""
    has_whole_definitions: bool
    """A method's definition describes the JSON-RPC envelope too."""
    has_result_type: bool
    """Results say what they are, and for how long they may be kept."""
    has_icons: bool
    """What is listed may have icons, and a stream begins with an event to come back to."""


_TABLE = (
    #        name          handshake batches notes  structured objects  no id  whole  typed  icons
    Revision("2024-11-05", True,     False,  False, False,     False,   False, False, False, False),
    Revision("2025-03-26", True,     True,   True,  False,     False,   False, False, False, False),
    Revision("2025-06-18", True,     False,  True,  True,      True,    False, False, False, False),
    Revision("2025-11-25", True,     False,  True,  True,      True,    True,  True,  False, True),
    Revision("2026-07-28", False,    False,  True,  True,      False,   True,  True,  True,  True),
)  # fmt: skip

REVISIONS: Final = {revision.name: revision for revision in _TABLE}
HANDSHAKE_REVISIONS: Final = tuple(revision.name for revision in _TABLE if revision.has_handshake)
STATELESS_REVISIONS: Final = tuple(revision.name for revision in _TABLE if not revision.has_handshake)
NEWEST_HANDSHAKE: Final = REVISIONS[HANDSHAKE_REVISIONS[-1]]
