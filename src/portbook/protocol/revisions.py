"""The table of differences between the revisions of MCP. Pure: no I/O.

Each trait that a revision has or lacks is a row, so that no other module compares dates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["HANDSHAKE_REVISIONS", "NEWEST_HANDSHAKE", "REVISIONS", "STATELESS_REVISIONS", "Revision"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Revision:
    """One revision of the protocol."""

    name: str
    has_handshake: bool
    """A connection begins with `initialize`; otherwise each request names its revision."""
    has_batches: bool
    """A JSON array of messages is accepted, as this revision requires."""
    has_annotations: bool
    """Tools have annotations about their effect."""
    has_completions: bool
    """Servers declare whether they complete arguments; before, clients had to try."""
    has_completion_context: bool
    """A request to complete an argument has the arguments that were given before it."""
    has_audio: bool
    """Content may be audio."""
    has_titles: bool
    """Listed entries may have a title."""
    has_listing_meta: bool
    """Listed entries may have a `_meta`."""
    has_resource_links: bool
    """Content may be a link to a resource."""
    has_structured_content: bool
    """Tools have an `outputSchema`, results a `structuredContent`."""
    wants_objects: bool
    """Output schema and structured content must be objects; other values are wrapped as `{"result": …}`."""
    may_omit_id: bool
    """An error whose request is unknown has no id; before, its id is null, as in JSON-RPC."""
    has_whole_definitions: bool
    """A method's definition includes the JSON-RPC envelope."""
    has_icons: bool
    """Listed entries may have icons."""
    primes_streams: bool
    """A stream begins with an empty event that has an id to resume from."""
    has_task_requests: bool
    """A client asks for a task by its call, and waits for the task's result with a request of its own."""
    has_result_type: bool
    """Results have a type, and how long they may be cached."""


_NAMES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
_TRAITS: Final = {
    #                         2024-11 2025-03 2025-06 2025-11 2026-07
    "has_handshake":          (True,  True,   True,   True,   False),
    "has_batches":            (False, True,   False,  False,  False),
    "has_annotations":        (False, True,   True,   True,   True),
    "has_completions":        (False, True,   True,   True,   True),
    "has_completion_context": (False, False,  True,   True,   True),
    "has_audio":              (False, True,   True,   True,   True),
    "has_titles":             (False, False,  True,   True,   True),
    "has_listing_meta":       (False, False,  True,   True,   True),
    "has_resource_links":     (False, False,  True,   True,   True),
    "has_structured_content": (False, False,  True,   True,   True),
    "wants_objects":          (False, False,  True,   True,   False),
    "may_omit_id":            (False, False,  False,  True,   True),
    "has_whole_definitions":  (False, False,  False,  True,   True),
    "has_icons":              (False, False,  False,  True,   True),
    "primes_streams":         (False, False,  False,  True,   False),
    "has_task_requests":      (False, False,  False,  True,   False),
    "has_result_type":        (False, False,  False,  False,  True),
}  # fmt: skip
_TABLE: Final = tuple(
    Revision(name=name, **{trait: values[at] for trait, values in _TRAITS.items()})
    for at, name in enumerate(_NAMES)
)

REVISIONS: Final = {revision.name: revision for revision in _TABLE}
HANDSHAKE_REVISIONS: Final = tuple(revision.name for revision in _TABLE if revision.has_handshake)
STATELESS_REVISIONS: Final = tuple(revision.name for revision in _TABLE if not revision.has_handshake)
NEWEST_HANDSHAKE: Final = REVISIONS[HANDSHAKE_REVISIONS[-1]]
