"""`ServedOffers`: judges what servers offer, and puts what is approved into the catalog.

An offer is judged whenever a connection begins, when a server says that its lists have changed, and when
the lock has changed. `LeftOutReport` tells the operator what is not served. `without_secrets` takes the
secrets out that servers were given.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Protocol, cast

from portbook.canonical import fingerprint
from portbook.errors import Reason
from portbook.escaping import escaped
from portbook.model import JSON, JSONObject, Kind
from portbook.protocol.mirrored_headers import BadMark, Mark, marked_params
from portbook.tools.catalog import LeftOutEntry
from portbook.tools.spec import ToolSpec
from portbook.tools.tool_names import listed_name
from portbook.tools.upstream_entries import WithheldEntry
from portbook.upstreams.listed_definitions import ObservedDefinition, Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.names_effects_and_skills import specs_of
from portbook.upstreams.session_isolation import JudgedOffer, ProcessOffers
from portbook.upstreams.trust_by_lock import Judgement, Trust, Withheld

__all__ = ["LeftOutReport", "ServedOffers", "Shelf", "without_secrets"]

# How often the lock is looked at; a review counts after this long.
_LOOK_S: Final = 1.0

_LISTED: Final[tuple[Kind, ...]] = ("tool", "resource", "prompt")


class Shelf(Protocol):
    """Where entries of servers are served from: the catalog."""

    @property
    def left_out(self) -> tuple[LeftOutEntry, ...]:
        """Return what cannot be served."""
        ...

    def serves(self, name: str, kind: Kind) -> bool:
        """Return whether there is an entry of this `kind` with any name of it."""
        ...

    def locate(self, uri: str) -> tuple[str, JSONObject] | None:
        """Return the name of the resource at `uri`, and the values of its template's variables, or None."""
        ...

    def server_of(self, resource: str) -> str | None:
        """Return the alias of the server that offers the resource of this name, or None."""
        ...

    def replace(self, source: str, specs: Iterable[ToolSpec], withheld: Iterable[WithheldEntry]) -> None:
        """Serve `specs` in place of all that came from `source` before; refuse calls of the `withheld`."""
        ...


class ServedOffers:
    """What all servers offer, and what of it is served."""

    def __init__(
        self,
        trust: Trust,
        shelf: Shelf,
        publish: Callable[[Kind], None],
        tell: Callable[[str], None],
    ) -> None:
        """Serve what `trust` approves.

        `publish` is told of changed lists, `tell` of what concerns the operator.
        """
        self._trust = trust
        self._shelf = shelf
        self._publish = publish
        self.left_out = LeftOutReport(lambda: shelf.left_out, tell)
        """What is not served: it cannot be, or waits for approval."""
        self._processes: dict[str, ProcessOffers] = {}
        self._unasked: dict[str, DeclaredUpstream] = {}
        self._specs: dict[str, list[ToolSpec]] = {}
        self._marks: dict[str, dict[str, tuple[Mark, ...]]] = {}
        self._withheld: dict[str, tuple[Withheld, ...]] = {}
        self._entries: dict[str, list[WithheldEntry]] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._listed: dict[str, dict[Kind, str]] = {}
        self._instructions: dict[str, str | None] = {}
        self._looking: asyncio.Task[None] | None = None
        self.has_listed = False
        """Whether clients may have got a list already: from then on, a first offer is news to them."""

    def put_known(self, declared: DeclaredUpstream) -> bool:
        """Serve what is known of a server that was never asked; return whether something is."""
        offer = self._trust.known(declared)
        if offer is None:
            return False
        self._unasked[declared.alias] = declared
        self._put(declared, offer, Judgement(offer.definitions, instructions=offer.instructions))
        return True

    async def take(
        self,
        declared: DeclaredUpstream,
        offer: Offer,
        announced: frozenset[str] = frozenset(),
        process: object = None,
    ) -> None:
        """Judge what a `process` of a server offers now, and serve what is approved.

        `announced` are the notifications of changed lists that the server sent before.
        """
        alias = declared.alias
        async with self._turn_of(alias):
            judged = await self._judge(declared, offer)
            self._unasked.pop(alias, None)
            offers = self._processes.setdefault(alias, ProcessOffers(declared))
            offers.take(process, judged)
            self._put(declared, offers.latest, offers.judgement(), announced)

    def end(self, alias: str, process: object) -> None:
        """Serve what the other processes of a server offer: this one has ended."""
        offers = self._processes.get(alias)
        if offers is not None and offers.end(process):
            self._put(offers.declared, offers.latest, offers.judgement())

    def watch(self) -> None:
        """Look at what is approved from now on. In the event loop."""
        self._looking = self._looking or asyncio.get_running_loop().create_task(self._look())

    def tools_of(self, alias: str) -> int:
        """Return how many tools of a server are served."""
        return sum(spec.kind == "tool" for spec in self._specs.get(alias, ()))

    def find(self, kind: Kind, name: str) -> tuple[ToolSpec | None, WithheldEntry | None]:
        """Return what is served under a canonical name now, and what is withheld under it."""
        served = (spec for specs in self._specs.values() for spec in specs)
        withheld = (entry for entries in self._entries.values() for entry in entries)
        return (
            next((spec for spec in served if (spec.kind, spec.name) == (kind, name)), None),
            next((entry for entry in withheld if (entry.kind, entry.name) == (kind, name)), None),
        )

    def instructions(self) -> dict[str, str]:
        """Return the instructions of servers that are approved, by alias."""
        return {alias: words for alias, words in sorted(self._instructions.items()) if words}

    def marks_of(self, alias: str, name: str) -> tuple[Mark, ...]:
        """Return the arguments that a tool wants in headers, by the server's own name of it."""
        return self._marks.get(alias, {}).get(name, ())

    def withheld_of(self, alias: str) -> tuple[Withheld, ...]:
        """Return what is withheld of a server."""
        return self._withheld.get(alias, ())

    async def close(self) -> None:
        """Look no longer."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait((self._looking,))

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._trust.has_changed():
                for declared in tuple(self._unasked.values()):
                    if not self.put_known(declared):
                        self._put(declared, Offer(declared.alias), Judgement(()))
                for alias in tuple(self._processes):
                    await self._judge_again(alias)

    async def _judge_again(self, alias: str) -> None:
        """Judge what is offered when its turn has come: it may have changed meanwhile."""
        async with self._turn_of(alias):
            offers = self._processes[alias]
            for process, offer in offers.of_each():
                offers.judge_again(process, await self._judge(offers.declared, offer))
            self._put(offers.declared, offers.latest, offers.judgement())

    async def _judge(self, declared: DeclaredUpstream, offer: Offer) -> JudgedOffer:
        # A comparison of schemas may take seconds, which no other call has to wait for.
        return JudgedOffer(offer, await asyncio.to_thread(self._trust.judge, declared, offer))

    def _turn_of(self, alias: str) -> asyncio.Lock:
        return self._turns.setdefault(alias, asyncio.Lock())

    def _put(
        self,
        declared: DeclaredUpstream,
        offer: Offer,
        judged: Judgement,
        announced: frozenset[str] = frozenset(),
    ) -> None:
        alias = declared.alias
        specs = list(specs_of(declared, judged.served, completes=offer.completes))
        entries = [_entry(declared, each) for each in judged.withheld if _is_wanted(declared, each)]
        self._specs[alias] = specs
        self._instructions[alias] = judged.instructions
        self._marks[alias] = _marks_in(specs)
        self._entries[alias] = entries
        self._shelf.replace(alias, specs, entries)
        self.left_out.place(alias, declared.place)
        self.left_out.tell_new()
        if self._withheld.get(alias, ()) != judged.withheld:
            self._withheld[alias] = judged.withheld
            attacks = sum(each.verdict.is_quarantined for each in judged.withheld)
            self.left_out.tell_of_withheld(alias, len(judged.withheld), attacks, is_pending=judged.is_pending)
        self._publish_changes(alias, specs, announced)

    def _publish_changes(self, alias: str, specs: list[ToolSpec], announced: frozenset[str]) -> None:
        """Publish which lists are different now; first ones are news only to clients that listed before."""
        listed: dict[Kind, str] = {
            kind: fingerprint([spec.definition() for spec in specs if spec.kind == kind]) for kind in _LISTED
        }
        before = self._listed.get(alias)
        self._listed[alias] = listed
        for kind in _LISTED:
            is_new = before is None and self.has_listed and any(spec.kind == kind for spec in specs)
            is_announced = any(f"/{kind}s/" in method for method in announced)
            if is_new or is_announced or (before is not None and before[kind] != listed[kind]):
                self._publish(kind)


def _marks_in(specs: Iterable[ToolSpec]) -> dict[str, tuple[Mark, ...]]:
    """Return the arguments that each tool wants in headers, by the server's own name of it."""
    found: dict[str, tuple[Mark, ...]] = {}
    for spec in specs:
        if spec.kind == "tool" and spec.upstream is not None:
            with contextlib.suppress(BadMark):  # the catalog leaves such a tool out
                found[spec.upstream.name] = marked_params(spec.input_schema)
    return found


def _is_wanted(declared: DeclaredUpstream, withheld: Withheld) -> bool:
    return withheld.observed.kind != "tool" or declared.serves(withheld.observed.name)


def _entry(declared: DeclaredUpstream, withheld: Withheld) -> WithheldEntry:
    spec = next(specs_of(declared, [withheld.observed], completes=False))
    names = {spec.declared, listed_name(spec.declared)} if spec.kind == "tool" else set[str]()
    verdict = withheld.verdict
    recorded = {"server": declared.alias, **verdict.as_data()}
    reason = Reason.TOOL_QUARANTINED if verdict.is_quarantined else Reason.TOOL_WITHHELD
    return WithheldEntry(spec.kind, spec.name, frozenset(names), verdict.as_told(), recorded, reason)


# `LeftOutReport`: tells the operator what servers offer and is not served, once and within limits.
#
# An entry is left out that cannot be served, and one that waits for approval is withheld.

# A server decides how many of its entries cannot be served; the log is not its to fill.
_MAX_TOLD: Final = 10
_MAX_NAME: Final = 80


class LeftOutReport:
    """Which entries are left out, in sentences with the place of their server's settings."""

    def __init__(self, left_out: Callable[[], Iterable[LeftOutEntry]], tell: Callable[[str], None]) -> None:
        self._left_out = left_out
        self._tell = tell
        self._places: dict[str, str] = {}
        self._told: frozenset[LeftOutEntry] = frozenset()

    def place(self, alias: str, place: str) -> None:
        """Begin the sentences on a server with where the settings name it."""
        self._places[alias] = place

    def sentences(self) -> list[str]:
        """Return a sentence for each entry that is left out now."""
        return [self._sentence(each) for each in self._entries()]

    def tell_new(self) -> None:
        """Tell of what was not left out when this was called last."""
        entries = self._entries()
        new = [each for each in entries if each not in self._told]
        self._told = frozenset(entries)
        for each in new[:_MAX_TOLD]:
            self._tell(self._sentence(each))
        if len(new) > _MAX_TOLD:
            more = len(new) - _MAX_TOLD
            self._tell(f"{more} more entries of MCP servers are not served; `portbook tools` lists them")

    def tell_of_withheld(self, alias: str, count: int, attacks: int, *, is_pending: bool) -> None:
        """Tell how many definitions of a server wait for approval, and how many of them look like attacks.

        `is_pending` says whether nothing of the server was ever approved.
        """
        if is_pending:
            self._tell(f"mcp.{alias}: nothing of it is approved yet; run `portbook pin {alias}`")
        elif count:
            few = "1 definition is" if count == 1 else f"{count} definitions are"
            self._tell(f"mcp.{alias}: {few} withheld; run `portbook review {alias}`")
        if attacks:
            few = "1 definition looks" if attacks == 1 else f"{attacks} definitions look"
            self._tell(f"mcp.{alias}: {few} like an attack on the model; run `portbook scan`")

    def _entries(self) -> list[LeftOutEntry]:
        # A completion is left out with its prompt or template.
        return [each for each in self._left_out() if each.kind != "completion"]

    def _sentence(self, entry: LeftOutEntry) -> str:
        place = self._places.get(entry.source)
        server = f"mcp.{entry.source}" if not place else f"{place}: mcp.{entry.source}"
        return f"{server}: {entry.kind} '{escaped(entry.name[:_MAX_NAME])}' is not served: {entry.why}"


# Takes the secrets that servers were given out of what a server offers.
#
# What a server offers is listed to every client, and written to the lock and the store. A mark stands where
# a secret was, which the scan finds.


def without_secrets(offer: Offer, hide: Callable[[str], str]) -> Offer:
    """Return an offer without secrets; `hide` takes them out of a text.

    What has one in its own name could not be called any more, and is left out.
    """
    words = offer.instructions
    kept: list[ObservedDefinition] = []
    left_out = list(map(hide, offer.left_out))
    for each in offer.definitions:
        if hide(each.name) != each.name:
            left_out.append(f"a {each.kind} is left out: its name has a secret in it that the settings give")
            continue
        hidden = _hidden(each.definition, hide)
        kept.append(
            each if hidden is each.definition else replace(each, definition=cast("JSONObject", hidden))
        )
    return replace(
        offer,
        definitions=tuple(kept),
        instructions=None if words is None else hide(words),
        left_out=tuple(left_out),
    )


def _hidden(value: JSON, hide: Callable[[str], str]) -> JSON:
    """Return a value without secrets; the same object where there are none."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        told: JSONObject = {hide(name): _hidden(each, hide) for name, each in value.items()}
        is_same = all(name in told and told[name] is each for name, each in value.items())
        return value if is_same else told
    if isinstance(value, list):
        items = [_hidden(each, hide) for each in value]
        return value if all(one is other for one, other in zip(items, value, strict=True)) else items
    return value
