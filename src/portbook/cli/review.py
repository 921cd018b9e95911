"""`portbook review`: shows withheld definitions beside the approved ones, and approves them one by one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

import click

from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option
from portbook.cli.pin_report import finding_lines, report_data, report_words, title_of
from portbook.cli.pinned_servers import PinnedServers, open_servers
from portbook.cli.review_columns import compared_parts
from portbook.cli.terminal import claim_stdout, print_data, say, stop_with, verdict_or_none
from portbook.pins.grade import Reaction
from portbook.pins.pin_lock import PinLock, approve
from portbook.pins.server_definitions import ServerDefinitions
from portbook.pins.standing import PinVerdict
from portbook.stores.errors import StoreError

__all__ = ["command"]

_ANSWERS: Final = {"a": "approve", "k": "keep", "q": "quit"}


@dataclass(frozen=True, slots=True)
class _Reviewed:
    """One server with definitions that are withheld."""

    alias: str
    observed: ServerDefinitions
    withheld: list[PinVerdict]


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

    A definition is reviewed as the server that is running saw it last. A server that was never asked is asked
    now.
    """
    out = claim_stdout()
    with verdict_or_none(out):
        try:
            servers = open_servers(config, names)
            offers = servers.recall()
            problems = {alias: offer for alias, offer in offers.items() if isinstance(offer, str)}
            waiting = _waiting(servers, offers)
            if is_json or not (out.isatty() and sys.stdin.isatty()):
                _print(waiting, problems, out, is_json=is_json)
            else:
                _decide(servers, waiting, out, is_forced=force)
                waiting = _waiting(servers, offers)
        except (*START_ERRORS, StoreError) as error:
            raise stop_with(error) from None
        except click.Abort:
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
        for alias, problem in problems.items():
            say(f"warning: mcp.{alias} could not be asked: {problem}")
        raise click.exceptions.Exit(ExitCode.FAILURE if waiting or problems else ExitCode.SUCCESS)


def _waiting(servers: PinnedServers, offers: Mapping[str, ServerDefinitions | str]) -> list[_Reviewed]:
    """Return the servers with withheld definitions."""
    found: list[_Reviewed] = []
    for alias, offer in offers.items():
        if isinstance(offer, str):
            continue
        withheld = [each for each in servers.judge(alias, offers).values() if each.is_withheld]
        if withheld:
            found.append(_Reviewed(alias, offer, withheld))
    return found


def _print(waiting: list[_Reviewed], problems: dict[str, str], out: TextIO, *, is_json: bool) -> None:
    data: dict[str, Any] = {
        "servers": [
            *(report_data(each.alias, each.withheld) for each in waiting),
            *(report_data(alias, [], problem) for alias, problem in problems.items()),
        ]
    }
    words = [line for each in waiting for line in report_words(each.alias, each.withheld)]
    print_data(data, words, out, is_json=is_json)


def _decide(servers: PinnedServers, waiting: list[_Reviewed], out: TextIO, *, is_forced: bool) -> None:
    if not waiting:
        say("nothing is withheld")
    for each in waiting:
        for verdict in each.withheld:
            click.echo("\n".join(_shown(servers, each, verdict)), out)
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
                _approve(servers, each, verdict)


def _shown(servers: PinnedServers, reviewed: _Reviewed, verdict: PinVerdict) -> Iterator[str]:
    difference = verdict.difference
    approved = servers.pins.servers.get(reviewed.alias) or ServerDefinitions()
    yield ""
    yield f"{reviewed.alias}: {title_of(verdict)}"
    for change in verdict.difference.changes:
        yield f"  {change.part or 'as a whole'}: {change.grade.value}: {change.note}"
    yield from (f"  {line}" for line in finding_lines(verdict))
    key = (difference.kind, difference.name)
    yield from compared_parts(approved.of(*key), reviewed.observed.of(*key))


def _approve(servers: PinnedServers, reviewed: _Reviewed, verdict: PinVerdict) -> None:
    """Write one definition to the lock, as it was shown."""
    key = (verdict.difference.kind, verdict.difference.name)
    before = PinLock.read(servers.folder).servers.get(reviewed.alias) or ServerDefinitions()
    approve(servers.folder, {reviewed.alias: before.merged(*key, reviewed.observed.of(*key))})
    say("approved")
