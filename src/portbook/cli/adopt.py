"""`portbook adopt`: puts Portbook in front of the MCP servers of clients, and takes it back."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from portbook.adopt.adoption_journal import AdoptionJournal
from portbook.adopt.adoption_plan import PlannedChange, planned_clients
from portbook.adopt.client_document import NotReadable
from portbook.adopt.file_change import ChangedMeanwhile, backup_path, read_if_there
from portbook.adopt.running_clients import running_clients
from portbook.adopt.servers_and_aliases import AdoptedServer
from portbook.app.servers_asked_once import declared_servers
from portbook.cli.adopt_candidates import Survey, home_folder, portbook_command, survey_clients
from portbook.cli.adopt_report import (
    OfferedDecision,
    ServerRow,
    difference,
    offered_decisions,
    sandbox_lines,
    shown_lines,
    table_lines,
    verdict_lines,
)
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail, print_json, say, stop_with, verdict_or_none
from portbook.exports.client_table import CLIENTS, KnownClient
from portbook.model import JSON, JSONObject
from portbook.sandbox.confined_command import problem_of_system
from portbook.settings import CONFIG_NAME

__all__ = ["command"]


@click.command("adopt")
@click.option(
    "--client",
    "clients",
    multiple=True,
    type=click.Choice([client.name for client in CLIENTS]),
    help="Look at this client alone. Repeatable.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Look at this file alone, such as the one of a project. Repeatable.",
)
@click.option(
    "--server", "servers", multiple=True, metavar="NAME", help="Adopt this server alone. Repeatable."
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the settings.  [default: ~/.config/portbook]",
)
@click.option("--yes", "is_yes", is_flag=True, help="Do not ask; needed without a terminal.")
@click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
@click.option("--sandbox", is_flag=True, help="Confine each server to what it touches in a trial.")
@click.option("--undo", is_flag=True, help="Give every file back as it was.")
@click.option("--show", is_flag=True, help="Show what happens to calls of the adopted servers.")
@json_option("Print what was found and done as JSON.")
def command(
    clients: tuple[str, ...],
    files: tuple[Path, ...],
    servers: tuple[str, ...],
    *,
    into: Path | None,
    is_yes: bool,
    dry_run: bool,
    sandbox: bool,
    undo: bool,
    show: bool,
    is_json: bool,
) -> None:
    """Put Portbook in front of the MCP servers of the clients on this machine.

    Reads the configuration of every known client, asks the servers what they offer, and shows what was found.
    With your yes, it writes the servers to portbook.toml, approves what they offer in portbook.lock, and puts
    one entry for Portbook into each client in their place. All else in these files stays as it is. Values of
    variables stay in the client's file; values of headers go to files that only you can read.

    With --sandbox, each server that Portbook starts is tried out first, and the settings confine it to what
    it touched; none of its tools is called.

    A server that cannot be taken over, or cannot be asked now, is left in place, and the table says why.
    --undo gives every file back, byte for byte. In one that has changed since, the servers are put back in
    place of our entry where their names are free; otherwise only our entry is removed, and it says so.
    """
    out = claim_stdout()
    with verdict_or_none(out):
        folder = (into or home_folder() / ".config" / "portbook").expanduser().absolute()
        report = _Report(out, is_json=is_json)
        choices = {"--client": clients, "--file": files, "--server": servers}
        flags = {"--dry-run": dry_run, "--sandbox": sandbox}
        if undo:
            _refuse_with("--undo", {**choices, **flags, "--show": show})
        elif show:
            _refuse_with("--show", {**choices, **flags})
        try:
            if undo:
                raise click.exceptions.Exit(_undo(folder, report))
            if show:
                _show(folder, {}, report)
                report.end()
                return
            if sandbox and (problem := problem_of_system()) is not None:
                raise fail(f"--sandbox: {problem}", ExitCode.INVALID)
            survey = survey_clients(folder, clients, files, servers, is_confined=sandbox, tell=say)
            _adopt(survey, report, is_yes=is_yes, is_dry=dry_run)
        except (NotReadable, ChangedMeanwhile, OSError) as error:
            raise stop_with(error) from None
        except START_ERRORS as error:
            raise stop_with(error) from None
        except click.Abort:
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None


def _refuse_with(alone: str, others: Mapping[str, object]) -> None:
    """Raise `UsageError` where an option is given that would be ignored: its user expects less to happen."""
    given = [name for name, value in others.items() if value]
    if given:
        raise click.UsageError(f"{alone} does not go together with {', '.join(given)}")


class _Report:
    """What the command prints: lines as they come, or one JSON document at its end."""

    def __init__(self, out: TextIO, *, is_json: bool) -> None:
        self._out = out
        self._is_json = is_json
        self._data: JSONObject = {}

    def add(self, data: JSONObject, lines: Iterable[str]) -> None:
        self._data |= data
        words = [] if self._is_json else list(lines)
        if words:
            click.echo("\n".join(words), self._out)
            self._out.flush()

    @property
    def width(self) -> int | None:
        """Return how wide the terminal is; None where there is none."""
        return shutil.get_terminal_size().columns if self._out.isatty() else None

    def differences(self, texts: dict[str, str]) -> None:
        """Add differences: exact ones for a program, and such as cannot move its cursor for a terminal."""
        found: list[JSON] = [{"path": path, "difference": text} for path, text in texts.items()]
        is_shown = self._out.isatty()
        lines = [
            line
            for text in texts.values()
            for line in (shown_lines(text) if is_shown else [text.removesuffix("\n")])
        ]
        self.add({"changes": found}, lines)

    def end(self) -> None:
        if self._is_json:
            print_json(self._data, self._out)


def _adopt(survey: Survey, report: _Report, *, is_yes: bool, is_dry: bool) -> None:
    for problem in survey.problems:
        say(f"warning: {problem}")
    report.add(survey_data(survey), table_lines(survey.rows, report.width) if survey.rows else ())
    report.add({"adopted": False}, sandbox_lines(survey.rows))
    if not survey.adopted:
        say(_nothing_to_adopt(survey))
        report.differences({})
    elif is_dry:
        secrets = survey.secrets()
        report.differences({str(each.path): difference(each, secrets) for each, _ in _changes(survey)})
    elif is_yes or _is_agreed(survey):
        _make(survey, report)
    else:
        say("nothing was changed")
    report.end()


def _nothing_to_adopt(survey: Survey) -> str:
    if survey.settings.is_file():
        return "there is nothing new to adopt; `portbook adopt --show` lists what is behind Portbook"
    return (
        "there is nothing to adopt" if survey.rows else "there is nothing to adopt: no MCP server was found"
    )


def _is_agreed(survey: Survey) -> bool:
    if not sys.stdin.isatty():
        raise fail(
            "there is no terminal to ask at; look with --dry-run, and adopt with --yes", ExitCode.INVALID
        )
    titles = sorted({found.place.client.title for each in survey.adopted for found in each.found})
    question = f"Put Portbook in front of {_counted(len(survey.adopted))} of {', '.join(titles)}?"
    return click.confirm(question, err=True)


def _make(survey: Survey, report: _Report) -> None:
    changes = _changes(survey)
    try:
        AdoptionJournal.read(survey.folder).make(changes)
    except (OSError, KeyboardInterrupt):
        _tell_unfinished(changes)
        raise
    say(f"adopted {_counted(len(survey.adopted))}; the settings are {survey.settings}")
    found: list[JSON] = [
        {"path": str(each.path), "backup": None if each.backup is None else str(each.backup)}
        for each, _ in changes
    ]
    running = _running(survey.adopted)
    for client in running:
        say(f"{client.title} is running: restart it, so that it reads its configuration again")
    report.add({"adopted": True, "changes": found, "restart": [client.name for client in running]}, ())
    _show(survey.folder, survey.withheld(), report)
    say("`portbook adopt --undo` gives every file back")


def _tell_unfinished(changes: list[PlannedChange]) -> None:
    """Say how far an adoption came that stops in the middle."""
    made = 0
    for each, _ in changes:
        with contextlib.suppress(OSError):
            made += read_if_there(each.path) == each.after
    if made:
        say(f"{made} of {len(changes)} files were changed; `portbook adopt --undo` gives them back")


def _changes(survey: Survey) -> list[PlannedChange]:
    """Return every change of an adoption, those of our own files first."""
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    clients = planned_clients(survey.files, survey.adopted, portbook_command(), survey.settings, stamp)
    own: list[PlannedChange] = [
        (replace(each, backup=_backup(each.path, stamp)), ()) for each in survey.own_files
    ]
    return own + clients


def _counted(servers: int) -> str:
    return "1 server" if servers == 1 else f"{servers} servers"


def _backup(path: Path, stamp: str) -> Path | None:
    return backup_path(path, stamp) if path.exists() else None


def _running(adopted: list[AdoptedServer]) -> list[KnownClient]:
    names = {found.place.client.name for each in adopted for found in each.found}
    return running_clients(client for client in CLIENTS if client.name in names)


def _show(folder: Path, withheld: dict[str, int], report: _Report) -> None:
    path = folder / CONFIG_NAME
    if not path.is_file():
        raise fail(f"nothing is adopted: there is no {path}")
    settings = settings_from(path)
    decisions = list(offered_decisions(settings, declared_servers(settings)))
    report.add(decisions_data(decisions, withheld), verdict_lines(decisions, withheld, path))


def _undo(folder: Path, report: _Report) -> ExitCode:
    try:
        journal = AdoptionJournal.read(folder)
    except (ValueError, KeyError):
        raise fail(f"the journal of adoptions in {folder} cannot be read; nothing was changed") from None
    names = {change.path for change in journal.changes}
    conflicts = journal.undo()
    for conflict in conflicts:
        say(f"conflict: {conflict}")
    say(
        f"{len(names) - len(conflicts)} of {len(names)} files are as they were"
        if names
        else "there is nothing to undo"
    )
    if names and folder.is_dir():
        say(f"the records of calls stay in {folder}")
    files: list[JSON] = [*sorted(map(str, names))]
    report.add({"files": files, "conflicts": [*conflicts]}, ())
    report.end()
    return ExitCode.FAILURE if conflicts else ExitCode.SUCCESS


# What `portbook adopt --json` prints.


def survey_data(survey: Survey) -> JSONObject:
    """Return the servers that were found, and what could not be read."""
    return {
        "settings": str(survey.settings),
        "servers": [_server(row) for row in survey.rows],
        "warnings": [*survey.problems],
    }


def decisions_data(decisions: Iterable[OfferedDecision], withheld: dict[str, int]) -> JSONObject:
    """Return what happens to a call of each tool, and how many tools the scan withholds by server."""
    found: list[JSON] = [
        {
            "server": each.server,
            "tool": each.name.partition(".")[2],
            "effect": each.effect.value,
            "action": each.action.value,
        }
        for each in decisions
    ]
    return {"decisions": found, "withheld": dict[str, JSON](withheld)}


def _server(row: ServerRow) -> JSONObject:
    found, server, destructive = row.found, row.server, row.destructive
    clients = set[str]() if server is None else {each.place.client.name for each in server.found}
    return {
        "client": found.place.client.name,
        "file": str(found.place.file),
        "name": found.name,
        "alias": None if server is None else server.alias,
        "starts": found.shown,
        "tools": None if row.offered is None else len(row.offered.tools),
        "destructive": [*destructive.names],
        "do_not_say": destructive.open,
        "withheld": sum(each.is_quarantined for each in row.verdicts.values()),
        "secrets": found.clear_secrets,
        "clients": [*sorted(clients)],
        "sandbox": None if server is None else server.sandbox,
        "left": row.left,
    }
