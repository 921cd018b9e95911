"""`portbook approvals`: calls that wait for an operator, and the operator's decision."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO

import click

from portbook.access.approval_state_and_binding import State, Ticket, Undecidable, as_json
from portbook.app.rules_from_settings import redactor_of
from portbook.app.start_warnings import OPERATOR_KEY
from portbook.app.store_from_settings import store_of
from portbook.app.usable_settings import signer_of
from portbook.audit.checkpoints_made_and_stored import CheckpointMaker, CheckpointStore
from portbook.audit.journal import Journal
from portbook.cli.main import CommandGroup
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail, print_data, say, stop_with
from portbook.clock import Clock, SystemClock
from portbook.escaping import escaped
from portbook.ids import RandomIds
from portbook.model import Arrival, Call, CallerContext, Done
from portbook.settings import Settings
from portbook.stages.recorder import both_views
from portbook.stages.state import Trail
from portbook.stores.approval_sql import LONG_AGO
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.caller_keys import OPERATOR
from portbook.stores.connection_clock_and_errors import StoreError

__all__ = ["SHORTEST_ID", "ask_which", "command", "table_of_waiting"]

# The calls that wait for approval, as a table for a terminal: number, id, caller, tool and arguments.

# Fewer characters of an id are more likely a slip than an id.
SHORTEST_ID: Final = 4
_SHOWN_ID: Final = 8
_HEADER: Final = ("#", "id", "expires", "caller", "tool", "arguments")
_GAP: Final = "  "
_MAX_SHOWN: Final = 4096


def table_of_waiting(tickets: Sequence[Ticket]) -> list[str]:
    """Return the lines of the table; the last column is cut where the terminal ends, `show` has all of it."""
    if not tickets:
        return []
    rows = _rows(tickets)
    widths, room = _widths_and_room(rows)
    return [
        _GAP.join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), _cut(row[-1], room)]
        )
        for row in (_HEADER, *rows)
    ]


def _rows(tickets: Sequence[Ticket]) -> list[tuple[str, ...]]:
    length = _distinct(tickets)
    return [
        (
            str(number),
            ticket.id[:length],
            _expiry(ticket),
            escaped(ticket.caller, 40),
            escaped(ticket.tool, 60),
            escaped(json.dumps(ticket.shown, ensure_ascii=False), _MAX_SHOWN),
        )
        for number, ticket in enumerate(tickets, 1)
    ]


def _widths_and_room(rows: Sequence[tuple[str, ...]]) -> tuple[list[int], int]:
    """Return the widths of all columns but the last, and what the terminal has left for that."""
    widths = [max(len(row[at]) for row in (_HEADER, *rows)) for at in range(len(_HEADER) - 1)]
    return widths, max(shutil.get_terminal_size().columns - sum(widths) - len(_GAP) * len(widths), 20)


def _is_cut(tickets: Sequence[Ticket], number: int) -> bool:
    """Return whether the table shows less than all of the call in its line `number`."""
    rows = _rows(tickets)
    arguments = rows[number - 1][-1]
    return len(arguments) > _widths_and_room(rows)[1] or len(arguments) >= _MAX_SHOWN


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def _distinct(tickets: Sequence[Ticket]) -> int:
    """Return how many characters tell the ids apart."""
    longest = max(len(ticket.id) for ticket in tickets)
    lengths = range(_SHOWN_ID, longest + 1)
    return next((at for at in lengths if len({one.id[:at] for one in tickets}) == len(tickets)), longest)


# Asks at the terminal which of the listed calls to approve or deny, by the number of their line.


def ask_which(tickets: Sequence[Ticket], decide: Callable[[Ticket, str], None]) -> bool:
    """Ask which of the listed calls to decide: a number means the line that was shown, come what may.

    Return whether one was decided; False where the person leaves.
    """
    while True:
        said = click.prompt(
            "a NUMBER approves, d NUMBER denies, Enter leaves", default="", show_default=False, err=True
        )
        if not said.strip():
            return False
        word, _, number = said.strip().partition(" ")
        decision = {"a": "approve", "d": "deny"}.get(word)
        if decision is not None and number.isdecimal() and 1 <= int(number) <= len(tickets):
            ticket = tickets[int(number) - 1]
            # Nobody approves what they have not seen.
            if decision == "approve" and _is_cut(tickets, int(number)) and not _is_confirmed(ticket):
                continue
            decide(ticket, decision)
            return True
        say(f"error: write a or d and a number from 1 to {len(tickets)}, such as: a 1")


def _is_confirmed(ticket: Ticket) -> bool:
    """Show all of a call, and ask whether it may run."""
    for line in _in_words(ticket):
        click.echo(line, err=True)
    return click.confirm("approve this call?", default=False, err=True)


_reason_option = click.option("--reason", metavar="TEXT", help="Reason to store with the decision.")


@click.group("approvals", cls=CommandGroup, invoke_without_command=True)
@json_option()
@config_option
@click.pass_context
def command(context: click.Context, *, is_json: bool, config: Path | None) -> None:
    """List, show and decide approvals: calls that policy lets run only after a person approves them.

    Alone, it lists the calls that wait, with their arguments; on a terminal it asks which to decide, until
    none waits or you leave.
    """
    if context.invoked_subcommand is not None:
        return
    out = claim_stdout()
    while True:
        with _approvals(config) as approvals:
            tickets = approvals.tickets(State.PENDING)
        data = {"approvals": [as_json(ticket) for ticket in tickets]}
        print_data(data, table_of_waiting(tickets), out, is_json=is_json, is_ascii=True)
        if not out.isatty() or is_json:
            return
        if not tickets:
            say("no call waits for approval; `portbook approvals list` lists the decided ones")
            return
        if not sys.stdin.isatty() or not ask_which(tickets, partial(_decide_listed, config, out)):
            return


@command.command("list")
@click.option(
    "--state", type=click.Choice([state.value for state in State]), help="List only approvals in this state."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="List at most this many, the newest first.",
)
@json_option()
@config_option
def list_them(state: str | None, *, limit: int, is_json: bool, config: Path | None) -> None:
    """List approvals, the newest first."""
    out = claim_stdout()
    with _approvals(config) as approvals:
        tickets = approvals.tickets(None if state is None else State(state), limit)
    data = {"approvals": [as_json(ticket) for ticket in tickets]}
    _print(data, [_in_a_line(ticket) for ticket in tickets], out, is_json=is_json)


@command.command("show")
@click.argument("approval_id", metavar="ID")
@json_option()
@config_option
def show(approval_id: str, *, is_json: bool, config: Path | None) -> None:
    """Show one approval: its call, its caller, and its state."""
    out = claim_stdout()
    with _approvals(config) as approvals:
        ticket = approvals.ticket(_whole_id(approvals, approval_id))
    if ticket is None:
        raise _not_found()
    _print(as_json(ticket), _in_words(ticket), out, is_json=is_json)


@command.command("approve")
@click.argument("approval_id", metavar="ID")
@_reason_option
@json_option()
@config_option
def approve(approval_id: str, *, reason: str | None, is_json: bool, config: Path | None) -> None:
    """Approve a call: it may run once. Prints the approval. ID may be shortened while it is unique."""
    _decide(approval_id, "approve", reason, config, claim_stdout(), is_json=is_json)


@command.command("deny")
@click.argument("approval_id", metavar="ID")
@_reason_option
@json_option()
@config_option
def deny(approval_id: str, *, reason: str | None, is_json: bool, config: Path | None) -> None:
    """Deny a call. An approved call that has not run yet can still be denied. ID may be shortened."""
    _decide(approval_id, "deny", reason, config, claim_stdout(), is_json=is_json)


def _decide_listed(config: Path | None, out: TextIO, ticket: Ticket, decision: str) -> None:
    _decide(ticket.id, decision, None, config, out, is_json=False)


def _decide(
    approval_id: str, decision: str, reason: str | None, config: Path | None, out: TextIO, *, is_json: bool
) -> None:
    settings = _settings(config)
    if reason is not None and (redactor := redactor_of(settings, _known_secrets(), b"")) is not None:
        reason = redactor.redact_text(reason)
    with _approvals(config) as approvals:
        try:
            whole = _whole_id(approvals, approval_id)
            ticket = asyncio.run(approvals.decide(whole, decision, by=_user(), reason=reason))
        except Undecidable as error:
            raise (_not_found() if error.state is None else fail(str(error))) from None
    try:
        _note_decision(settings, ticket.id, decision)
    except OSError as error:  # the decision is stored; only the log lacks it
        say(
            f"warning: the decision is stored, but could not be written to the log: {error.strerror or error}"
        )
    _print(as_json(ticket), _in_words(ticket), out, is_json=is_json)


def _not_found() -> click.exceptions.Exit:
    """Print that there is no such approval, and where ids are found; return the exit to raise."""
    return fail(f"{Undecidable(None)}; `portbook approvals list` shows the ids")


def _settings(config: Path | None) -> Settings:
    try:
        return settings_from(config)
    except START_ERRORS as error:
        raise stop_with(error) from None


def _known_secrets() -> list[str]:
    operator = os.environ.get(OPERATOR_KEY)
    return [operator] if operator else []


@contextmanager
def _approvals(config: Path | None) -> Generator[ApprovalStore]:
    """Yield the approvals of the store that the settings name; an unusable store ends the command."""
    try:
        store = store_of(_settings(config))
        try:
            yield ApprovalStore(store, SystemClock())
        finally:
            store.close()
    except (*START_ERRORS, StoreError) as error:
        raise stop_with(error) from None


def _whole_id(approvals: ApprovalStore, given: str) -> str:
    """Return the id that begins with `given`, or `given` where none does.

    Raises `Exit` where several do.
    """
    if len(given) < SHORTEST_ID or approvals.ticket(given) is not None:
        return given
    found = [ticket.id for ticket in approvals.tickets(limit=None) if ticket.id.startswith(given)]
    if len(found) > 1:
        raise fail(f"{len(found)} approvals begin with this id; write more of it")
    return found[0] if found else given


def _user() -> str:
    """Return the user of this process as the system knows it, not from a variable that the user can set."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # as in many containers
        return f"user {number}"


def _in_a_line(ticket: Ticket) -> str:
    state = ticket.state.ljust(8)
    return "  ".join(
        [ticket.id, state, _expiry(ticket).ljust(len(LONG_AGO)), *map(escaped, (ticket.caller, ticket.tool))]
    )


def _expiry(ticket: Ticket) -> str:
    """Return when a ticket expires; what a store that was restored or copied made expire has no time."""
    return "by restore or copy" if ticket.expires_at == LONG_AGO else ticket.expires_at


def _in_words(ticket: Ticket) -> list[str]:
    rows: list[tuple[str, str | None]] = [
        ("approval", ticket.id),
        ("state", ticket.state),
        ("tool", ticket.tool),
        ("caller", ticket.caller),
        ("session", ticket.session),
        ("rule", f"{ticket.rule} ({ticket.place})" if ticket.place else ticket.rule),
        ("asked", ticket.asked_at),
        ("expires", _expiry(ticket)),
        ("decided", ticket.decided_at and f"{ticket.decided_at} by {ticket.decided_by}"),
        ("reason", ticket.reason),
        ("started", ticket.started_at),
        ("ended", ticket.ended_at),
    ]
    lines = [f"{name}:".ljust(10) + escaped(value) for name, value in rows if value]
    # Nothing is cut off: the operator has to see all of it.
    arguments = json.dumps(ticket.shown, indent=2, ensure_ascii=False).split("\n")
    return [*lines, "arguments:", *(f"  {escaped(line, limit=10 * len(line) + 1)}" for line in arguments)]


def _print(data: dict[str, Any], words: list[str], out: TextIO, *, is_json: bool) -> None:
    print_data(data, words, out, is_json=is_json, is_ascii=True)
    if not words and out.isatty() and not is_json:
        say("there are no approvals")


# The record of an operator's decision on the command line.


_METHOD = "approvals.decide"


def _note_decision(settings: Settings, approval_id: str, decision: str) -> None:
    """Write the decision on an approval to the log, as the HTTP door does.

    Raises `OSError` where the log cannot be written.
    """
    clock, ids = SystemClock(), RandomIds().name(b"")
    call = Call(Arrival("cli", "approvals"), _METHOD, None, {}, 0, CallerContext(), None, b"")
    trail = Trail(OPERATOR, approval=approval_id, operator_said=decision)
    done, ts = Done(b"null"), clock.now()
    journal = Journal(settings.log_dir, started=ts, run=ids[0][:8].decode(), keep=settings.keep_runs)
    try:
        journal.collect()
        journal.write(*both_views(call, done, ids, trail, ts.encode(), 0, deterministic=False))
        if settings.checkpoint_s:
            _cover(journal, settings, clock)
    finally:
        journal.close()


def _cover(journal: Journal, settings: Settings, clock: Clock) -> None:
    """Cover the record by a checkpoint.

    Raises `OSError` where that cannot be stored.
    """
    store = store_of(settings)
    try:
        maker = CheckpointMaker(
            journal,
            CheckpointStore(store),
            settings.log_dir,
            clock,
            lambda: signer_of(settings),
            settings.checkpoint_s,
        )
        maker.collect()
        covered = maker.cover(is_last=True)
        if covered is not None:
            maker.settle(covered)
    finally:
        store.close()
