"""What a server offers, as it says itself: one value per definition, whole and as it was sent.

Each list is asked for page by page, within limits; a server without a capability is not asked for its list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from portbook.model import JSON, JSONObject
from portbook.protocol.extensions import SKILLS
from portbook.upstreams.answer_checks import RpcError
from portbook.upstreams.connection import UpstreamConnection
from portbook.upstreams.request_meta import meta_for

__all__ = ["ObservedDefinition", "Offer", "OfferKind", "TooMany", "observe"]

# The most entries of one list, and the most pages: more is a fault, or an attempt to fill the memory.
_MAX_ENTRIES: Final = 5000
_MAX_PAGES: Final = 200

OfferKind = str
"""`tool`, `resource`, `template`, `prompt` or `skill`."""


class _List(NamedTuple):
    kind: OfferKind
    method: str
    member: str
    capability: str
    named_by: str
    is_extension: bool = False


_LISTS: Final = (
    _List("tool", "tools/list", "tools", "tools", "name"),
    _List("resource", "resources/list", "resources", "resources", "uri"),
    _List("template", "resources/templates/list", "resourceTemplates", "resources", "uriTemplate"),
    _List("prompt", "prompts/list", "prompts", "prompts", "name"),
    _List("skill", "skills/list", "skills", SKILLS, "uri", is_extension=True),
)


class TooMany(Exception):
    """A list that is longer than any that is meant."""


@dataclass(frozen=True, slots=True)
class ObservedDefinition:
    """One entry of a server's list: the whole definition as the server sent it."""

    server: str
    kind: OfferKind
    name: str
    """The server's own name of it: of a resource its URI, of a template the template."""
    definition: JSONObject


@dataclass(frozen=True, slots=True)
class Offer:
    """All that a server offers at one moment."""

    server: str
    definitions: tuple[ObservedDefinition, ...] = ()
    instructions: str | None = None
    completes: bool = False
    """Whether it completes arguments of prompts and templates."""

    def of(self, kind: OfferKind) -> Iterator[ObservedDefinition]:
        """Iterate over the definitions of a kind."""
        return (each for each in self.definitions if each.kind == kind)

    def as_data(self) -> JSONObject:
        """Return the offer as JSON."""
        definitions: list[JSON] = [[each.kind, each.name, each.definition] for each in self.definitions]
        return {
            "definitions": definitions,
            "instructions": self.instructions,
            "completes": self.completes,
        }

    @classmethod
    def of_data(cls, server: str, data: JSONObject) -> Offer:
        """Return the offer that `as_data` gave."""
        found = cast("list[tuple[str, str, JSONObject]]", data["definitions"])
        return cls(
            server,
            tuple(ObservedDefinition(server, kind, name, definition) for kind, name, definition in found),
            cast("str | None", data["instructions"]),
            completes=data["completes"] is True,
        )


async def observe(server: str, connection: UpstreamConnection, timeout_s: float) -> Offer:
    """Return what the server at the other end offers now.

    Raises `TooMany`, and as a request does.
    """
    found: list[ObservedDefinition] = []
    for each in _LISTS:
        if _offers(connection, each):
            found.extend(await _entries(server, connection, each, timeout_s))
    return Offer(
        server, tuple(found), connection.instructions, completes="completions" in connection.capabilities
    )


def _offers(connection: UpstreamConnection, wanted: _List) -> bool:
    declared = connection.capabilities
    if wanted.is_extension:
        extensions = declared.get("extensions")
        declared = extensions if isinstance(extensions, dict) else {}
    return wanted.capability in declared


async def _entries(
    server: str, connection: UpstreamConnection, wanted: _List, timeout_s: float
) -> list[ObservedDefinition]:
    entries: list[ObservedDefinition] = []
    cursor: JSON = None
    for _ in range(_MAX_PAGES):
        meta = meta_for(connection.revision)
        params: JSONObject = {"_meta": meta} if meta else {}
        if cursor is not None:
            params["cursor"] = cursor
        try:
            page = await connection.request(wanted.method, params, timeout_s)
        except RpcError:
            if wanted.kind == "template":  # many servers with resources have no templates, and say so thus
                return entries
            raise
        for definition in cast("list[JSONObject]", page.get(wanted.member) or []):
            name = definition.get(wanted.named_by)
            if isinstance(name, str):
                entries.append(ObservedDefinition(server, wanted.kind, name, definition))
        if len(entries) > _MAX_ENTRIES:
            raise TooMany(f"its {wanted.method} has more than {_MAX_ENTRIES} entries")
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return entries
    raise TooMany(f"its {wanted.method} has no end after {_MAX_PAGES} pages")
