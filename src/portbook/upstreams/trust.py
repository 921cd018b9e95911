"""Which definitions of a server are served: the one place that is asked. Pure: no I/O.

A definition is served while it is approved. Whatever a server changes after that is withheld, so that nobody
calls a tool that is not the one that was approved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from portbook.canonical import fingerprint
from portbook.upstreams.definitions import ObservedDefinition

__all__ = ["FirstUse", "Judgement", "Trust", "Withheld"]


class Withheld(NamedTuple):
    """A definition that is not served, and why."""

    observed: ObservedDefinition
    why: str


class Judgement(NamedTuple):
    """What becomes of the definitions of one server."""

    served: tuple[ObservedDefinition, ...]
    """Those that are approved, in the order of the server."""
    withheld: tuple[Withheld, ...]


class Trust(Protocol):
    """Decides which definitions are approved."""

    def judge(self, server: str, observed: Sequence[ObservedDefinition]) -> Judgement:
        """Return which of all the definitions that a `server` has now are served, and which are withheld."""
        ...


class FirstUse:
    """Approves what is seen first, for as long as the process runs: `trust = "first-use"`."""

    def __init__(self) -> None:
        self._approved: dict[tuple[str, str, str], str] = {}

    def judge(self, server: str, observed: Sequence[ObservedDefinition]) -> Judgement:
        """Return which definitions are those that were seen first."""
        served: list[ObservedDefinition] = []
        withheld: list[Withheld] = []
        for each in observed:
            digest = fingerprint(each.definition)
            first = self._approved.setdefault((server, each.kind, each.name), digest)
            if digest == first:
                served.append(each)
            else:
                why = "its definition has changed since it was first seen; restart Portbook to approve it"
                withheld.append(Withheld(each, why))
        return Judgement(tuple(served), tuple(withheld))
