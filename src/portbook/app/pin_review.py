"""`PinReview`: what MCP servers offer beside what is approved of them, and approvals of single definitions.

For everybody who reviews: `portbook pin`, `portbook review`, and operators over HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from portbook.canonical import fingerprint
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.pins.approved_definitions_in_lock import PinLock, approve_definitions
from portbook.pins.difference import compared_parts
from portbook.pins.on_change import Reaction
from portbook.pins.pinned_definitions import PinnedKind, ServerDefinitions
from portbook.pins.served_or_withheld import PinVerdict, PinVerdicts, judge
from portbook.stores.upstream_status_and_offers import ObservationStore
from portbook.upstreams.listed_definitions import Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.trust_by_lock import pinned_part

__all__ = ["Offers", "PinReview", "ShownDefinition", "WithheldServer", "last_offers"]

# What each server offers, by alias, or why that is not known.
Offers = Mapping[str, ServerDefinitions | str]

_NOTHING: Final = ServerDefinitions()
_NEVER_ASKED: Final = "it was never asked what it offers; call one of its tools, or restart it"


def last_offers(observations: ObservationStore, declared: Mapping[str, DeclaredUpstream]) -> Offers:
    """Return what each server offered when it was last asked.

    Raises `StoreError` where that cannot be read.
    """
    found: dict[str, ServerDefinitions | str] = {}
    for alias, server in declared.items():
        seen = observations.of(alias)
        found[alias] = (
            _NEVER_ASKED if seen is None else pinned_part(server, Offer.of_data(alias, seen.definitions))
        )
    return found


class ShownDefinition(NamedTuple):
    """A definition that a person decided on, and the digest of what that person saw."""

    kind: PinnedKind
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class WithheldServer:
    """A server, and its definitions that are withheld."""

    alias: str
    approved: ServerDefinitions
    observed: ServerDefinitions
    withheld: tuple[PinVerdict, ...]

    def as_data(self) -> list[JSON]:
        """Return the withheld definitions as JSON: both sides of each part, grade, and why."""
        return [self._definition(verdict) for verdict in self.withheld]

    def sides(self, verdict: PinVerdict) -> tuple[JSONObject | None, JSONObject | None]:
        """Return a definition as approved and as observed."""
        key = verdict.difference.kind, verdict.difference.name
        return self.approved.of(*key), self.observed.of(*key)

    def digest(self, verdict: PinVerdict) -> str:
        """Return the digest of both sides of a definition, by which an approval names what was shown."""
        sides: list[JSON] = [*self.sides(verdict)]
        return fingerprint([verdict.difference.kind, verdict.difference.name, *sides])

    def _definition(self, verdict: PinVerdict) -> JSONObject:
        parts: list[JSON] = [part.as_data() for part in compared_parts(*self.sides(verdict))]
        return {
            "findings": [],
            **verdict.as_data(),
            "quarantined": verdict.is_quarantined,
            "parts": parts,
            "digest": self.digest(verdict),
        }


@dataclass(frozen=True, slots=True)
class PinReview:
    """What is approved of some servers, and what they offer."""

    folder: Path
    """The folder of the lock."""
    declared: Mapping[str, DeclaredUpstream]
    offers: Offers
    pins: PinLock

    @classmethod
    def of(cls, folder: Path, declared: Mapping[str, DeclaredUpstream], offers: Offers) -> PinReview:
        """Return the review of what is approved now. Raises `BadLock` where the lock cannot be read."""
        return cls(folder, declared, offers, PinLock.read(folder))

    def judge(self, alias: str) -> PinVerdicts:
        """Return how the definitions of a server stand; there are none where its offer is not known."""
        observed = self.offers[alias]
        if isinstance(observed, str):
            return {}
        seen = {other: each for other, each in self.offers.items() if isinstance(each, ServerDefinitions)}
        pins = self.pins.servers
        others = {
            other: {*seen.get(other, _NOTHING).tools, *pins.get(other, _NOTHING).tools}
            for other in {*seen, *pins} - {alias}
        }
        return judge(pins.get(alias), observed, self.declared[alias].pins.on_change, others)

    def withheld(self, alias: str) -> WithheldServer:
        """Return what of a server is withheld."""
        offer = self.offers[alias]
        found = tuple(each for each in self.judge(alias).values() if each.is_withheld)
        observed = _NOTHING if isinstance(offer, str) else offer
        return WithheldServer(alias, self.pins.servers.get(alias) or _NOTHING, observed, found)

    def pinned(self, alias: str) -> int:
        """Return how many definitions of a server are in the lock."""
        approved = self.pins.servers.get(alias) or _NOTHING
        return len(approved.tools) + len(approved.prompts) + (approved.instructions is not None)

    def approve(self, alias: str, shown: Iterable[ShownDefinition], *, is_forced: bool) -> None:
        """Write definitions of a server to the lock, as they were shown: all of them, or none.

        Raises `Refused` where one has changed since, or is blocked and the approval is not forced. Raises
        `BadLock` where the lock cannot be read, `OSError` where it cannot be written.
        """
        server = self.withheld(alias)
        by_key = {(each.difference.kind, each.difference.name): each for each in server.withheld}
        chosen: dict[tuple[PinnedKind, str], JSONObject | None] = {}
        for number, each in enumerate(shown):
            key: tuple[PinnedKind, str] = each.kind, each.name
            place = f"/definitions/{number}"
            verdict = by_key.get(key)
            if verdict is None or server.digest(verdict) != each.digest:
                finding = Finding(place, "is no longer what was shown", "review", "")
                raise Refused(Reason.REVIEW_OUTDATED, (finding,))
            if verdict.reaction is Reaction.BLOCK and not is_forced:
                raise Refused(Reason.REVIEW_BLOCKED, (Finding(place, _why_blocked(verdict), "review", ""),))
            chosen[key] = server.observed.of(*key)
        approve_definitions(self.folder, alias, chosen)


def _why_blocked(verdict: PinVerdict) -> str:
    return "looks like an attack" if verdict.is_quarantined else "is blocked by on_change"
