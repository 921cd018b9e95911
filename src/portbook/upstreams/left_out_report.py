"""`LeftOutReport`: tells the operator what servers offer and is not served, once and within limits.

An entry is left out that cannot be served, and one that waits for approval is withheld.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from portbook.escaping import escaped
from portbook.tools.catalog import LeftOutEntry

__all__ = ["LeftOutReport"]

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
