"""The hint that a gateway offers more tools than models choose well among. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.apis.table_reader import Table

__all__ = ["hint_of_many_tools"]

# Models choose badly among more tools than this, and some clients list no more.
_MANY_TOOLS: Final = 100


def hint_of_many_tools(table: Table, count: int) -> str | None:
    """Return how to choose among so many tools; None where there are few enough."""
    if count <= _MANY_TOOLS:
        return None
    advice = "choose with tags, include or exclude; `portbook tools --tree` shows them by tag"
    return str(table.wrong("openapi", f"becomes {count} tools; {advice}"))
