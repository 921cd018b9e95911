"""The calls that wait for approval, as a table for a terminal: number, id, caller, tool and arguments."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from typing import Final

from portbook.access.approval_ticket import Ticket
from portbook.escaping import escaped

__all__ = ["SHORTEST_ID", "table_of_waiting"]

# Fewer characters of an id are more likely a slip than an id.
SHORTEST_ID: Final = 4
_SHOWN_ID: Final = 8
_HEADER: Final = ("#", "id", "expires", "caller", "tool", "arguments")
_GAP: Final = "  "


def table_of_waiting(tickets: Sequence[Ticket]) -> list[str]:
    """Return the lines of the table; the last column is cut where the terminal ends, `show` has all of it."""
    if not tickets:
        return []
    length = _distinct(tickets)
    rows = [
        (
            str(number),
            ticket.id[:length],
            ticket.expires_at,
            escaped(ticket.caller, 40),
            escaped(ticket.tool, 60),
            escaped(json.dumps(ticket.shown, ensure_ascii=False), 4096),
        )
        for number, ticket in enumerate(tickets, 1)
    ]
    widths = [max(len(row[at]) for row in (_HEADER, *rows)) for at in range(len(_HEADER) - 1)]
    room = max(shutil.get_terminal_size().columns - sum(widths) - len(_GAP) * len(widths), 20)
    return [
        _GAP.join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), _cut(row[-1], room)]
        )
        for row in (_HEADER, *rows)
    ]


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def _distinct(tickets: Sequence[Ticket]) -> int:
    """Return how many characters tell the ids apart."""
    longest = max(len(ticket.id) for ticket in tickets)
    lengths = range(_SHOWN_ID, longest + 1)
    return next((at for at in lengths if len({one.id[:at] for one in tickets}) == len(tickets)), longest)
