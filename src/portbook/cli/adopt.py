"""`portbook adopt`: puts Portbook in front of the MCP servers of clients, and takes it back."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from portbook.adopt.adopted_server import AdoptedServer
from portbook.adopt.adoption_journal import AdoptionJournal
from portbook.adopt.adoption_plan import PlannedChange, planned_clients
from portbook.adopt.client_document import NotReadable
from portbook.adopt.client_table import CLIENTS
from portbook.adopt.file_change import ChangedMeanwhile
from portbook.adopt.running_clients import running_clients
from portbook.app.asked_servers import declared_servers
from portbook.app.offered_decisions import offered_decisions
from portbook.cli.adopt_report import difference_lines, table_lines, verdict_lines
from portbook.cli.adopt_survey import Survey, portbook_command, survey_clients
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, settings_from
from portbook.cli.terminal import claim_stdout, fail, say, stop_with, verdict_or_none
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
@click.option("--undo", is_flag=True, help="Give every file back as it was.")
@click.option("--show", is_flag=True, help="Show what happens to calls of the adopted servers.")
def command(
    clients: tuple[str, ...],
    files: tuple[Path, ...],
    servers: tuple[str, ...],
    *,
    into: Path | None,
    is_yes: bool,
    dry_run: bool,
    undo: bool,
    show: bool,
) -> None:
    """Put Portbook in front of the MCP servers of the clients on this machine.

    Reads the configuration of every known client, asks the servers what they offer, and shows what was found.
    With your yes, it writes the servers to portbook.toml, approves what they offer in portbook.lock, and puts
    one entry for Portbook into each client in their place. All else in these files stays as it is. Values of
    variables stay in the client's file; values of headers go to files that only you can read.

    A server that cannot be taken over, or cannot be asked now, is left in place, and the table says why.
    --undo gives every file back, byte for byte; from one that has changed since, only our entry is removed.
    """
    out = claim_stdout()
    with verdict_or_none(out):
        folder = (into or Path.home() / ".config" / "portbook").expanduser().absolute()
        try:
            if undo:
                raise click.exceptions.Exit(_undo(folder))
            if show:
                raise click.exceptions.Exit(_show(folder, {}, out))
            survey = survey_clients(folder, clients, files, servers)
            _adopt(survey, out, is_yes=is_yes, is_dry=dry_run)
        except (NotReadable, ChangedMeanwhile, OSError) as error:
            raise stop_with(error) from None
        except START_ERRORS as error:
            raise stop_with(error) from None
        except click.Abort:
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None


def _adopt(survey: Survey, out: TextIO, *, is_yes: bool, is_dry: bool) -> None:
    for problem in survey.problems:
        say(f"warning: {problem}")
    if survey.rows:
        click.echo("\n".join(table_lines(survey.rows)), out)
        out.flush()
    if not survey.adopted:
        say(
            "there is nothing to adopt"
            if survey.rows
            else "there is nothing to adopt: no MCP server was found"
        )
        return
    changes = _changes(survey)
    if is_dry:
        secrets = survey.secrets()
        for change, _ in changes:
            click.echo("\n".join(difference_lines(change, secrets)), out)
        return
    if not is_yes:
        if not sys.stdin.isatty():
            raise fail(
                "there is no terminal to ask at; look with --dry-run, and adopt with --yes", ExitCode.INVALID
            )
        titles = sorted({found.place.client.title for each in survey.adopted for found in each.found})
        question = f"Put Portbook in front of {_counted(len(survey.adopted))} of {', '.join(titles)}?"
        if not click.confirm(question, err=True):
            say("nothing was changed")
            return
    AdoptionJournal.read(survey.folder).make(changes)
    say(f"adopted {_counted(len(survey.adopted))}; the settings are {survey.settings}")
    _tell_running(survey.adopted)
    _show(survey.folder, survey.withheld(), out)


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
    return path.with_name(f"{path.name}.bak.{stamp}") if path.exists() else None


def _tell_running(adopted: list[AdoptedServer]) -> None:
    names = {found.place.client.name for each in adopted for found in each.found}
    for client in running_clients(client for client in CLIENTS if client.name in names):
        say(f"{client.title} is running: restart it, so that it reads its configuration again")


def _show(folder: Path, withheld: dict[str, int], out: TextIO) -> ExitCode:
    path = folder / CONFIG_NAME
    if not path.is_file():
        raise fail(f"nothing is adopted: there is no {path}")
    settings = settings_from(path)
    declared = declared_servers(settings)
    click.echo("\n".join(verdict_lines(offered_decisions(settings, declared), withheld)), out)
    return ExitCode.SUCCESS


def _undo(folder: Path) -> ExitCode:
    try:
        journal = AdoptionJournal.read(folder)
    except (ValueError, KeyError):
        raise fail(f"the journal of adoptions in {folder} cannot be read; nothing was changed") from None
    if not journal.changes:
        say("there is nothing to undo")
        return ExitCode.SUCCESS
    names = {change.path for change in journal.changes}
    conflicts = journal.undo()
    for conflict in conflicts:
        say(f"conflict: {conflict}")
    say(f"{len(names) - len(conflicts)} of {len(names)} files are as they were")
    return ExitCode.FAILURE if conflicts else ExitCode.SUCCESS
