"""Which definitions of a server are served: the one place that is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from portbook.canonical import fingerprint
from portbook.pins.approved_definitions_in_lock import WatchedPinLock
from portbook.pins.change_grades import with_trusted_hints
from portbook.pins.pinned_definitions import SERVER, ServerDefinitions
from portbook.pins.served_or_withheld import PinVerdict, PinVerdicts, judge, without_attacks
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.stores.lock_file import LOCK_NAME
from portbook.upstreams.listed_definitions import ObservedDefinition, Offer
from portbook.upstreams.mcp_table import DeclaredUpstream

__all__ = ["Judgement", "Memory", "PinnedTrust", "Trust", "Withheld", "pinned_part"]


class Withheld(NamedTuple):
    """A definition that is not served, and why."""

    observed: ObservedDefinition
    """The definition as observed; as approved, where the server no longer has it."""
    verdict: PinVerdict


class Judgement(NamedTuple):
    """What becomes of the definitions of one server."""

    served: tuple[ObservedDefinition, ...]
    """Those that are approved or accepted, in the order of the server."""
    withheld: tuple[Withheld, ...] = ()
    is_pending: bool = False
    """Whether nothing of the server is approved yet."""
    instructions: str | None = None
    """The server's own, where they are approved or accepted."""


class Trust(Protocol):
    """Decides which definitions are approved."""

    def known(self, declared: DeclaredUpstream) -> Offer | None:
        """Return what is known of a server before it was ever asked, or None."""
        ...

    def judge(self, declared: DeclaredUpstream, offer: Offer) -> Judgement:
        """Return which of all the definitions that a server has now are served, and which are withheld.

        It may take seconds, and is called in a thread.
        """
        ...

    def has_changed(self) -> bool:
        """Return whether something else is approved now than before."""
        ...


# `PinnedTrust`: serves what `portbook.lock` approves, and what `on_change` accepts beside that.
#
# A lock that cannot be read changes nothing: what was approved stays approved, and the operator is told.


class Memory(NamedTuple):
    """Where observed offers are kept."""

    recall: Callable[[str], Offer | None]
    """Returns what a server offered last, in any process."""
    remember: Callable[[Offer], None]


class _Judged(NamedTuple):
    """The last judgement on a server, and what it was made of."""

    approved: ServerDefinitions | None
    others: dict[str, frozenset[str]]
    """The names of the tools of the other servers at that time."""
    digest: str
    tools: frozenset[str]
    """The names of its own tools."""
    judgement: Judgement


class PinnedTrust:
    """Decides by the lock in a folder."""

    def __init__(
        self, folder: Path, memory: Memory, tell: Callable[[str], None], *, may_write: bool = True
    ) -> None:
        """Read the lock; where it is not to be written, what is seen first is approved only here.

        Raises `BadLock` where it cannot be used.
        """
        self._memory = memory
        self._tell = tell
        self._may_write = may_write
        self._lock = WatchedPinLock(folder)
        self._judged: dict[str, _Judged] = {}
        self._turn = threading.Lock()

    def known(self, declared: DeclaredUpstream) -> Offer | None:
        """Return what the lock has of a server, with the resources that it was last seen to have.

        None where the lock has no tool and no prompt of it: then it has to be asked.
        """
        approved = self._lock.pins.servers.get(declared.alias)
        if approved is None or not (approved.tools or approved.prompts):
            return None
        before = self._memory.recall(declared.alias) or Offer(declared.alias)
        pinned = (
            ObservedDefinition(declared.alias, kind, name, {"name": name, **parts})
            for kind, found in (("tool", approved.tools), ("prompt", approved.prompts))
            for name, parts in found.items()
        )
        rest = (each for each in before.definitions if each.kind not in ("tool", "prompt"))
        return Offer(declared.alias, (*pinned, *rest), approved.instructions, completes=before.completes)

    def judge(self, declared: DeclaredUpstream, offer: Offer) -> Judgement:
        """Return what becomes of an offer. Runs in a thread, for one offer of each server at a time."""
        alias, observed, digest = declared.alias, pinned_part(declared, offer), fingerprint(offer.as_data())
        with self._turn:
            before, others = self._judged.get(alias), self._others(alias)
        # What takes long is not done in turn: one server must not keep the others waiting.
        clean = self._clean(declared, observed, others)
        with self._turn:
            approved = self._approved(alias, clean)
            if before is None or before.digest != digest:
                self._memory.remember(offer)
        if before is not None and (before.digest, before.approved, before.others) == (
            *(digest, approved, others),
        ):
            return before.judgement
        judgement = _judgement(offer, approved, judge(approved, observed, declared.pins.on_change, others))
        with self._turn:
            self._judged[alias] = _Judged(approved, others, digest, frozenset(observed.tools), judgement)
        return judgement

    def has_changed(self) -> bool:
        """Return whether the lock approves something else than before, and read it if so."""
        try:
            return self._lock.has_changed()
        except BadLock as error:
            self._tell(f"{error}; what was approved before stays approved")
            return False

    def _others(self, alias: str) -> dict[str, frozenset[str]]:
        """Return the names of the tools of the other servers: those approved, and those seen until now."""
        found = {each: frozenset(pinned.tools) for each, pinned in self._lock.pins.servers.items()}
        for each, judged in self._judged.items():
            found[each] = found.get(each, frozenset()) | judged.tools
        found.pop(alias, None)
        return found

    def _clean(
        self, declared: DeclaredUpstream, observed: ServerDefinitions, others: dict[str, frozenset[str]]
    ) -> ServerDefinitions | None:
        """Return what is approved because it is seen first; None where that approves nothing."""
        if declared.pins.trust == "lock" or declared.alias in self._lock.pins.servers:
            return None
        return without_attacks(observed, judge(None, observed, declared.pins.on_change, others))

    def _approved(self, alias: str, clean: ServerDefinitions | None) -> ServerDefinitions | None:
        approved = self._lock.pins.servers.get(alias)
        if approved is not None or clean is None:
            return approved
        if not self._may_write:
            return clean
        try:
            self._lock.approve({alias: clean})
        except (BadLock, OSError) as error:
            self._tell(f"mcp.{alias}: {LOCK_NAME} cannot be written, so nothing of it is approved: {error}")
            return None
        self._lock.read_again()
        return self._lock.pins.servers.get(alias)


def pinned_part(declared: DeclaredUpstream, offer: Offer) -> ServerDefinitions:
    """Return what is pinned of an offer: the tools that are wanted, the prompts, the instructions."""
    return ServerDefinitions.observed(
        (each.definition for each in offer.of("tool") if declared.serves(each.name)),
        (each.definition for each in offer.of("prompt")),
        offer.instructions,
    )


def _judgement(offer: Offer, approved: ServerDefinitions | None, verdicts: PinVerdicts) -> Judgement:
    served: list[ObservedDefinition] = []
    withheld: list[Withheld] = []
    for each in offer.definitions:
        if each.kind not in ("tool", "prompt"):
            if approved is not None:  # content of a server that somebody has looked at
                served.append(each)
            continue
        verdict = verdicts.get((each.kind, each.name))
        if verdict is None:  # a tool that is not wanted
            continue
        if verdict.is_served:
            served.append(_trusted(each, approved))
        else:
            withheld.append(Withheld(each, verdict))
    gone = ((key, verdict) for key, verdict in verdicts.items() if verdict.is_withheld)
    there = {(each.kind, each.name) for each in offer.definitions}
    for (kind, name), verdict in gone:
        if kind != "server" and (kind, name) not in there and approved is not None:
            parts = approved.of(kind, name) or {}
            withheld.append(
                Withheld(ObservedDefinition(offer.server, kind, name, {"name": name, **parts}), verdict)
            )
    words = verdicts.get(("server", SERVER))
    instructions = offer.instructions if words is not None and words.is_served else None
    return Judgement(tuple(served), tuple(withheld), approved is None, instructions)


def _trusted(each: ObservedDefinition, approved: ServerDefinitions | None) -> ObservedDefinition:
    if each.kind != "tool" or approved is None:
        return each
    definition = with_trusted_hints(each.definition, approved.of("tool", each.name))
    return ObservedDefinition(each.server, each.kind, each.name, definition)
