"""`portbook review`: shows withheld definitions beside the approved ones, and approves them one by one."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TextIO

import click

from portbook.app.pin_review import Offers, WithheldServer, last_offers
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option
from portbook.cli.output_and_errors import claim_stdout, print_data, say, stop_with, verdict_or_none
from portbook.cli.pin import (
    PinnedServers,
    finding_lines,
    instance_lines,
    open_servers,
    opened_store,
    report_data,
    report_words,
    title_of,
)
from portbook.cli.validate_and_diff_formats import width_of
from portbook.clock import SystemClock
from portbook.escaping import escaped, escaped_json
from portbook.model import JSON, JSONObject
from portbook.pins.approved_definitions_in_lock import approve_definitions
from portbook.pins.difference import compared_parts
from portbook.pins.on_change import Reaction
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.pins.served_or_withheld import PinVerdict
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.store_port import StorePort
from portbook.stores.upstream_status_and_offers import ObservationStore, UpstreamStore

__all__ = ["command", "side_by_side"]

# A definition before and after, side by side. Nothing is cut off: whoever approves has to see all of it.

_LEAST_ROOM: Final = 20
_BETWEEN: Final = " │ "


def side_by_side(approved: JSONObject | None, observed: JSONObject | None) -> Iterator[str]:
    """Yield the lines that show what differs between two definitions, part by part."""
    room = max((shutil.get_terminal_size().columns - len(_BETWEEN)) // 2, _LEAST_ROOM)
    for compared in compared_parts(approved, observed):
        yield click.style(escaped(compared.part), bold=True)
        for place in compared.places:
            if place.pointer:
                yield escaped(place.pointer, limit=10 * len(place.pointer) + 1)
            yield from _columns(_lines(place.before), _lines(place.after), room)


def _lines(value: JSON) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [escaped(line, limit=10 * len(line) + 1) for line in value.split("\n")]
    return escaped_json(json.dumps(value, indent=2, ensure_ascii=False)).split("\n")


def _columns(left: list[str], right: list[str], room: int) -> Iterator[str]:
    cells = zip_longest(_wrapped(left, room), _wrapped(right, room), fillvalue="")
    for ours, theirs in cells:
        gap = " " * (room - width_of(ours))
        new = _BETWEEN + click.style(theirs, fg="green") if theirs else _BETWEEN.rstrip()
        yield click.style(ours, fg="red") + gap + new


def _wrapped(lines: list[str], room: int) -> list[str]:
    return [piece for line in lines for piece in _pieces(line, room)]


def _pieces(line: str, room: int) -> Iterator[str]:
    """Yield a line in pieces of at most `room` columns."""
    piece, width = "", 0
    for character in line:
        more = width_of(character)
        if width + more > room:
            yield piece
            piece, width = "", 0
        piece, width = piece + character, width + more
    yield piece


_ANSWERS: Final = {"a": "approve", "k": "keep", "q": "quit"}


@click.command("review")
@click.argument("names", metavar="[ALIAS]...", nargs=-1)
@click.option("--force", is_flag=True, help="Also decide on definitions that on_change or the scan blocks.")
@json_option()
@config_option
def command(names: tuple[str, ...], *, force: bool, is_json: bool, config: Path | None) -> None:
    """Review withheld definitions of MCP servers.

    On a terminal, each is shown beside the approved one, and you approve it or keep it withheld; an approved
    definition is written to portbook.lock, and served from then on. Without a terminal, or with --json, the
    graded differences are printed, and the exit code is 1 if there are any.

    Of a server that is running, the definitions are reviewed that it said last. Any other server is asked
    now.
    """
    out = claim_stdout()
    with verdict_or_none(out):
        try:
            servers = open_servers(config, names)
            offers = _recall(servers)
            problems = {alias: offer for alias, offer in offers.items() if isinstance(offer, str)}
            waiting = _waiting(servers, offers)
            if is_json or not (out.isatty() and sys.stdin.isatty()):
                _print(waiting, problems, out, is_json=is_json)
            else:
                _decide(servers.folder, waiting, out, is_forced=force)
                waiting = _waiting(servers, offers)
        except (*START_ERRORS, StoreError) as error:
            raise stop_with(error) from None
        except click.Abort:
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
        for alias, problem in problems.items():
            say(f"warning: mcp.{alias} could not be asked: {problem}")
        raise click.exceptions.Exit(ExitCode.FAILURE if waiting or problems else ExitCode.SUCCESS)


def _recall(servers: PinnedServers) -> dict[str, ServerDefinitions | str]:
    """Return what each running server said last that it offers; all others are asked now."""
    with opened_store(servers.settings) as store:
        running = {str(each["name"]) for each in _ready(store)}
        wanted = {name: servers.declared[name] for name in servers.names if name in running}
        seen = dict(last_offers(ObservationStore(store, SystemClock()), wanted))
    seen |= dict.fromkeys((name for name in servers.names if name not in seen), "it is not running")
    unknown = [name for name, offer in seen.items() if isinstance(offer, str)]
    return {**seen, **(servers.ask(*unknown) if unknown else {})}


def _ready(store: StorePort) -> list[JSONObject]:
    """Return the servers that a running process has a connection to."""
    return [each for each in UpstreamStore(store, SystemClock()).statuses() if each["state"] == "ready"]


def _waiting(servers: PinnedServers, offers: Offers) -> list[WithheldServer]:
    """Return the servers with withheld definitions."""
    review = servers.review(offers)
    return [found for alias in offers if (found := review.withheld(alias)).withheld]


def _print(waiting: list[WithheldServer], problems: dict[str, str], out: TextIO, *, is_json: bool) -> None:
    data: dict[str, Any] = {
        "servers": [
            *(report_data(each.alias, each.withheld) for each in waiting),
            *(report_data(alias, [], problem) for alias, problem in problems.items()),
        ]
    }
    words = [line for each in waiting for line in report_words(each.alias, each.withheld)]
    print_data(data, words, out, is_json=is_json)


def _decide(folder: Path, waiting: list[WithheldServer], out: TextIO, *, is_forced: bool) -> None:
    if not waiting:
        say("nothing is withheld")
    for each in waiting:
        for verdict in each.withheld:
            click.echo("\n".join(_shown(each, verdict)), out)
            out.flush()
            if verdict.reaction is Reaction.BLOCK and not is_forced:
                why = "it looks like an attack" if verdict.is_quarantined else "on_change blocks it"
                say(f"kept: {why}; to decide on it, use --force")
                continue
            answer = click.prompt(
                "a: approve, k: keep it withheld, q: quit",
                type=click.Choice(list(_ANSWERS)),
                default="k",
                show_choices=False,
                err=True,
            )
            if _ANSWERS[answer] == "quit":
                return
            if _ANSWERS[answer] == "approve":
                _approve(folder, each, verdict)


def _shown(reviewed: WithheldServer, verdict: PinVerdict) -> Iterator[str]:
    yield ""
    yield f"{reviewed.alias}: {title_of(verdict)}"
    for change in verdict.difference.changes:
        yield f"  {change.part or 'as a whole'}: {change.grade.value}: {change.note}"
        yield from (f"    {line}" for line in instance_lines(change))
    yield from (f"  {line}" for line in finding_lines(verdict))
    yield from side_by_side(*reviewed.sides(verdict))


def _approve(folder: Path, reviewed: WithheldServer, verdict: PinVerdict) -> None:
    """Write one definition to the lock, as it was shown."""
    key = (verdict.difference.kind, verdict.difference.name)
    approve_definitions(folder, reviewed.alias, {key: reviewed.observed.of(*key)})
    say("approved")
