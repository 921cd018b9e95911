"""What a server offers, as it says itself: one value per definition, whole and as it was sent.

Each list is asked for page by page, within limits; a server without a capability is not asked for its list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from portbook.canonical import json_bytes
from portbook.errors import Finding
from portbook.model import JSON, JSONObject
from portbook.protocol.extensions import SKILLS
from portbook.upstreams.connection_and_server_questions import UpstreamConnection
from portbook.upstreams.message_checks_and_meta import BadAnswer, RpcError, meta_for

__all__ = ["ObservedDefinition", "Offer", "OfferKind", "TooMany", "observe", "problem_in", "without_nulls"]

# The shape that a definition has to have before it can be approved, kept or served.
#
# A lenient operator lets pass what is a little wrong, never what nothing can be done with.

# Parts of every kind of definition; each may be missing.
_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "title": (str, "a string"),
    "description": (str, "a string"),
    "inputSchema": (dict, "an object"),
    "outputSchema": (dict, "an object"),
    "annotations": (dict, "an object"),
    "execution": (dict, "an object"),
    "_meta": (dict, "an object"),
    "icons": (list, "a list"),
    "arguments": (list, "a list"),
}


def without_nulls(definition: JSONObject) -> JSONObject:
    """Return a definition without the parts that are null, which some servers write for what is missing."""
    if None not in definition.values():
        return definition
    return {part: value for part, value in definition.items() if value is not None or part not in _TYPES}


def problem_in(definition: JSONObject, named_by: str, *, is_tool: bool = False) -> str | None:
    """Return what makes a definition unusable, with its place; None where nothing does."""
    if not isinstance(definition.get(named_by), str):
        return f"/{named_by}: must be a string"
    if not definition[named_by]:
        return f"/{named_by}: must not be empty"
    for part, (wanted, words) in _TYPES.items():
        if part in definition and not isinstance(definition[part], wanted):
            return f"/{part}: must be {words}"
    if is_tool and "inputSchema" not in definition:
        return "/inputSchema: is missing"
    return _problem_in_arguments(definition.get("arguments", []))


def _problem_in_arguments(arguments: JSON) -> str | None:
    for at, each in enumerate(arguments if isinstance(arguments, list) else []):
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            return f"/arguments/{at}: must be an object with a name"
    return None


# The most entries of one list, and the most pages: more is a fault, or an attempt to fill the memory.
_MAX_ENTRIES: Final = 5000
_MAX_PAGES: Final = 200
# As many sentences as an operator reads about entries that cannot be used.
_MAX_SENTENCES: Final = 10
# All lists of a server together, as JSON; in memory it takes many times as much.
_MAX_BYTES: Final = 4 * 1024 * 1024

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


# JSON-RPC's code for a method that does not exist. Some servers declare what they have nothing of.
_NO_METHOD: Final = -32601

# What is approved by its name.
_PINNED: Final = frozenset({"tool", "prompt"})


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
    left_out: tuple[str, ...] = ()
    """What it lists and nothing can be done with: sentences for the operator, and nothing that is kept."""

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
    """Return what the server at the other end offers now; an entry that cannot be used is left out.

    Raises `TooMany`, and as a request does.
    """
    found, left_out = list[ObservedDefinition](), list[str]()
    left = _MAX_BYTES
    for each in _LISTS:
        if _offers(connection, each):
            entries, size = await _entries(server, connection, each, timeout_s, left, left_out)
            found.extend(entries)
            left -= size
    return Offer(
        server,
        tuple(_named_once(found, left_out)),
        connection.instructions,
        completes="completions" in connection.capabilities,
        left_out=tuple(_few(left_out)),
    )


def _offers(connection: UpstreamConnection, wanted: _List) -> bool:
    declared = connection.capabilities
    if wanted.is_extension:
        extensions = declared.get("extensions")
        declared = extensions if isinstance(extensions, dict) else {}
    return wanted.capability in declared


async def _entries(
    server: str,
    connection: UpstreamConnection,
    wanted: _List,
    timeout_s: float,
    most_bytes: int,
    left_out: list[str],
) -> tuple[list[ObservedDefinition], int]:
    """Return the entries of a list, and its size as JSON."""
    entries: list[ObservedDefinition] = []
    cursor: JSON = None
    size = 0
    for _ in range(_MAX_PAGES):
        meta = meta_for(connection.revision)
        params: JSONObject = {"_meta": meta} if meta else {}
        if cursor is not None:
            params["cursor"] = cursor
        try:
            page = await connection.request(wanted.method, params, timeout_s)
        except RpcError as error:
            if wanted.kind == "template":  # many servers with resources have no templates, and say so thus
                return entries, size
            if error.code != _NO_METHOD or cursor is not None:
                raise
            left_out.append(f"it declares {wanted.capability}, and has no {wanted.method}")
            return entries, size
        except BadAnswer as error:
            page = _without_wrong(connection, wanted, error, left_out)
        entries += _usable(server, page, wanted, left_out)
        if len(entries) > _MAX_ENTRIES:
            raise TooMany(f"its {wanted.method} has more than {_MAX_ENTRIES} entries")
        size += len(json_bytes(page))
        if size > most_bytes:
            raise TooMany(f"its {wanted.method} makes its lists longer than {_MAX_BYTES} bytes")
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return entries, size
    raise TooMany(f"its {wanted.method} has no end after {_MAX_PAGES} pages")


# -- entries that cannot be used


def _without_wrong(
    connection: UpstreamConnection, wanted: _List, error: BadAnswer, left_out: list[str]
) -> JSONObject:
    """Return a page without the entries that break the schema, where nothing else does.

    Raises `BadAnswer` otherwise.
    """
    page, member = error.result, wanted.member
    entries = None if page is None else page.get(member)
    if page is None or not isinstance(entries, list):
        raise error
    connection.require_result(wanted.method, {**page, member: []})
    kept: list[JSON] = []
    for at, each in enumerate(entries):
        try:
            connection.require_result(wanted.method, {**page, member: [each]})
        except BadAnswer as wrong:
            first = wrong.findings[0]
            place = first.pointer.replace(f"/{member}/0", f"/{member}/{at}", 1)
            left_out.append(
                f"an entry of its {wanted.method} is left out: {place}: {first.message}; "
                '`validation = "warn"` takes what is a little wrong'
            )
        else:
            kept.append(each)
    return {**page, member: kept}


def _usable(
    server: str, page: JSONObject, wanted: _List, left_out: list[str]
) -> Iterator[ObservedDefinition]:
    """Yield the entries of a page that something can be done with.

    Raises `BadAnswer` where they are no list of objects, which nothing less is required of than that.
    """
    entries = page.get(wanted.member)
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        finding = Finding(f"/result/{wanted.member}", "must be a list of objects", "type", "")
        raise BadAnswer((finding,))
    for at, each in enumerate(cast("list[JSONObject]", entries)):
        definition = without_nulls(each)
        problem = problem_in(definition, wanted.named_by, is_tool=wanted.kind == "tool")
        if problem is None:
            name = cast("str", definition[wanted.named_by])
            yield ObservedDefinition(server, wanted.kind, name, definition)
        else:
            left_out.append(f"an entry of its {wanted.method} is left out: /{wanted.member}/{at}{problem}")


def _named_once(found: list[ObservedDefinition], left_out: list[str]) -> Iterator[ObservedDefinition]:
    """Yield what can be told apart: which one of two with the same name is meant, nobody knows."""
    counts = Counter((each.kind, each.name) for each in found if each.kind in _PINNED)
    for each in found:
        if counts[each.kind, each.name] < 2:
            yield each
    for (kind, name), count in counts.items():
        if count > 1:
            left_out.append(f"{kind} {name!r} is left out: the server has two entries of this name")


def _few(sentences: list[str]) -> list[str]:
    rest = len(sentences) - _MAX_SENTENCES
    return sentences if rest <= 0 else [*sentences[:_MAX_SENTENCES], f"and {rest} more are left out"]
