"""Which entries claim a name that another one claims, too. Pure: no I/O.

Entries of MCP servers come and go while Portbook serves. None of them may take a name over, or a call could
mean one tool today and a different one tomorrow: of several claimants, none is served. A name of the
operator's own tools stays theirs, so that no server can take one of them away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from portbook.model import Kind
from portbook.tools.spec import ToolSpec

__all__ = ["Named", "claims_of", "contested"]

Claim = tuple[Kind, str]


class Named(Protocol):
    """An entry of the catalog, as far as its names go."""

    @property
    def spec(self) -> ToolSpec:
        """Return its spec."""
        ...

    @property
    def listed(self) -> str:
        """Return its name in MCP listings."""
        ...


def claims_of(entry: Named) -> set[Claim]:
    """Return the names under which an entry can be called: of a tool, three that may be the same."""
    spec = entry.spec
    if spec.kind != "tool":
        return {(spec.kind, spec.name)}
    return {("tool", name) for name in (spec.name, entry.listed, spec.declared)}


def contested(own: Iterable[Named], others: Iterable[Named]) -> set[Claim]:
    """Return the names that more than one of the `others` claims, or one of them and one of our `own`."""
    taken = {claim for entry in own for claim in claims_of(entry)}
    counts = Counter(claim for entry in others for claim in claims_of(entry))
    return {claim for claim, count in counts.items() if count > 1 or claim in taken}
