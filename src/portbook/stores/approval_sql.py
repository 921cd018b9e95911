"""The SQL statements on the table of approval tickets.

`access/approval_state_and_binding.py` checks first which state may follow which. A statement that changes a
ticket still names the state that it expects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from portbook.access.approval_state_and_binding import State, Ticket
from portbook.canonical import json_bytes
from portbook.stores.connection_clock_and_errors import Connection, prune_rows

__all__ = [
    "LONG_AGO",
    "count_pending",
    "decide",
    "expire_open",
    "find",
    "finish",
    "give_back",
    "insert",
    "last_approved",
    "newest",
    "pending",
    "prune",
    "start",
    "twin",
]

_COLUMNS: Final = Ticket._fields
_LIST: Final = ", ".join(_COLUMNS)
_FIND: Final = f"SELECT {_LIST} FROM ticket WHERE id = ?"  # noqa: S608 - constant names
_INSERT: Final = f"INSERT INTO ticket ({_LIST}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - as above
_PAGE_AFTER: Final = (
    f"SELECT {_LIST}, rowid FROM ticket WHERE state IN ({{}}) AND (asked_at, rowid) < (?, ?) "  # noqa: S608 - as above
    "ORDER BY asked_at DESC, rowid DESC LIMIT ?"
)
_LAST_APPROVED: Final = (
    f"SELECT {_LIST} FROM (SELECT *, row_number() OVER "  # noqa: S608 - as above
    "(PARTITION BY tool, caller ORDER BY decided_at DESC) AS nth FROM ticket WHERE caller IN ({}) "
    "AND tool IN ({}) AND state IN ('approved', 'running', 'done', 'failed')) AS approved WHERE nth = 1"
)

# Before the time of every clock: clocks differ, and what is expired by one must be so by all.
LONG_AGO: Final = "1970-01-01T00:00:00.000Z"

# How many tickets are read at once: most lists are shorter, and a database sends all rows of a statement.
_PAGE: Final = 100
# After every ticket, in the order of their times and rows.
_START: Final = ("9999", 0)

# Few: it is done by a call that asks for an approval.
_PRUNED_AT_ONCE: Final = 100


def find(connection: Connection, approval_id: str) -> Ticket | None:
    """Return the ticket with this id."""
    row = connection.execute(_FIND, (approval_id,)).fetchone()
    return None if row is None else _ticket(row)


def newest(connection: Connection, states: Iterable[State]) -> Iterator[Ticket]:
    """Yield the tickets stored with one of `states`, newest first, as they are read: a page at a time."""
    wanted, after = tuple(states), _START
    while True:
        found = connection.execute(_PAGE_AFTER.format(_places(wanted)), (*wanted, *after, _PAGE))
        page = list(found)
        for row in page:
            yield _ticket(row[:-1])
        if len(page) < _PAGE:
            return
        after = (page[-1][_COLUMNS.index("asked_at")], page[-1][-1])


def twin(connection: Connection, ticket: Ticket) -> str | None:
    """Return the id of a usable ticket for the same call in the same session, approved ones first."""
    return connection.execute(
        "SELECT id FROM ticket WHERE caller = ? AND state IN ('approved', 'pending') AND expires_at > ? "
        "AND binding = ? AND session IS NOT DISTINCT FROM ? ORDER BY state LIMIT 1",
        (ticket.caller, ticket.asked_at, ticket.binding, ticket.session),
    ).get


def pending(connection: Connection, caller: str, now: str) -> tuple[int, int]:
    """Return the number of a caller's undecided tickets, and the bytes of their arguments."""
    return connection.execute(
        "SELECT count(*), coalesce(sum(octet_length(shown)), 0) FROM ticket "
        "WHERE caller = ? AND state = 'pending' AND expires_at > ?",
        (caller, now),
    ).get


def count_pending(connection: Connection, now: str) -> int:
    """Return the number of all undecided tickets."""
    return connection.execute(
        "SELECT count(*) FROM ticket WHERE state = 'pending' AND expires_at > ?", (now,)
    ).get


def last_approved(
    connection: Connection, tools: Iterable[str], callers: Iterable[str]
) -> dict[tuple[str, str], Ticket]:
    """Return the ticket of each of these tools that was approved last for each of these callers."""
    of_callers, of_tools = tuple(callers), tuple(tools)
    if not of_callers or not of_tools:
        return {}
    statement = _LAST_APPROVED.format(_places(of_callers), _places(of_tools))
    tickets = [_ticket(row) for row in connection.execute(statement, of_callers + of_tools)]
    return {(ticket.tool, ticket.caller): ticket for ticket in tickets}


def insert(connection: Connection, ticket: Ticket) -> None:
    """Store a new ticket."""
    values = {name: getattr(ticket, name) for name in _COLUMNS}
    values["shown"] = json_bytes(ticket.shown).decode()
    connection.execute(_INSERT, tuple(values.values()))


def decide(connection: Connection, ticket: Ticket, before: State) -> bool:
    """Store an operator's decision; return whether the ticket was still in the state `before`."""
    return _changed(
        connection,
        "UPDATE ticket SET state = ?, decided_at = ?, decided_by = ?, reason = ? "
        "WHERE id = ? AND state = ? RETURNING id",
        (ticket.state, ticket.decided_at, ticket.decided_by, ticket.reason, ticket.id, before),
    )


def start(connection: Connection, approval_id: str, owner: str, bound: str, caller: str, now: str) -> bool:
    """Store that `owner` runs the call of a ticket; return whether the ticket is approved for this call.

    One statement, so that of any number of processes one has its way.
    """
    return _changed(
        connection,
        "UPDATE ticket SET state = 'running', owner = ?, started_at = ? WHERE id = ? AND state = 'approved' "
        "AND binding = ? AND caller = ? AND expires_at > ? RETURNING id",
        (owner, now, approval_id, bound, caller, now),
    )


def finish(connection: Connection, approval_id: str, owner: str, state: State, now: str) -> None:
    """Store the final state of the call that `owner` ran."""
    connection.execute(
        "UPDATE ticket SET state = ?, ended_at = ? WHERE id = ? AND state = 'running' AND owner = ?",
        (state, now, approval_id, owner),
    )


def give_back(connection: Connection, approval_id: str, owner: str) -> None:
    """Store that the call of `owner` never ran, so that its ticket is approved again."""
    connection.execute(
        "UPDATE ticket SET state = 'approved', owner = NULL, started_at = NULL "
        "WHERE id = ? AND state = 'running' AND owner = ?",
        (approval_id, owner),
    )


def expire_open(connection: Connection) -> None:
    """Expire every ticket that may still be redeemed, also if its running call is given back."""
    connection.execute(
        "UPDATE ticket SET expires_at = ? WHERE state IN ('pending', 'approved', 'running')", (LONG_AGO,)
    )


def prune(connection: Connection, *, undecided_before: str, before: str) -> None:
    """Delete some of the tickets that expired before these times: undecided ones, and all."""
    for states, limit in (((State.PENDING,), undecided_before), (_WRITTEN, before)):
        old = f"state IN ({_places(states)}) AND expires_at < ? AND asked_at < ?"
        prune_rows(connection, "ticket", "rowid", old, (*states, limit, limit), limit=_PRUNED_AT_ONCE)


# A deleted ticket is refused like one that never existed, so pruning cannot let a call run twice.
_WRITTEN: Final = tuple(state for state in State if state not in (State.EXPIRED, State.UNKNOWN))


def _changed(connection: Connection, statement: str, values: tuple[object, ...]) -> bool:
    """Run a statement that returns the row it changes; return whether there was one."""
    return connection.execute(statement, values).fetchone() is not None


def _places(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))


def _ticket(row: tuple[Any, ...]) -> Ticket:
    values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    values |= {"state": State(values["state"]), "shown": json.loads(values["shown"])}
    return Ticket(**values)
