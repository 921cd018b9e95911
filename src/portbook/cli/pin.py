"""`portbook pin`: approves the definitions of MCP servers as they are now, or checks that they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import click

from portbook.app.pin_review import PinReview
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option
from portbook.cli.output_and_errors import claim_stdout, print_data, say, stop_with, verdict_or_none
from portbook.cli.pin_and_review_report import approved_words, differing, report_data, report_words
from portbook.cli.pinned_servers import PinnedServers, open_servers
from portbook.pins.approved_definitions_in_lock import approve
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.pins.standing import PinVerdict
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.lock_file import LOCK_NAME

__all__ = ["command"]


@dataclass(frozen=True, slots=True)
class _Compared:
    """One server: what it offers now, and how that differs from what is approved."""

    observed: ServerDefinitions | None
    """None where it could not be asked."""
    verdicts: list[PinVerdict]
    problem: str | None = None

    @property
    def has_attack(self) -> bool:
        """Return whether the scan found an attack in what is not approved."""
        return any(each.is_quarantined for each in self.verdicts)


@click.command("pin")
@click.argument("names", metavar="[ALIAS]...", nargs=-1)
@click.option("--check", is_flag=True, help=f"Write nothing; exit with 1 if {LOCK_NAME} differs.")
@click.option("--force", is_flag=True, help="Also approve definitions in which the scan finds an attack.")
@json_option()
@config_option
def command(names: tuple[str, ...], *, check: bool, force: bool, is_json: bool, config: Path | None) -> None:
    """Approve the definitions of MCP servers as they are now.

    Asks every server of the settings, or those named, what it offers, and writes it to portbook.lock beside
    the settings file: tools, prompts and instructions, part by part. What differs from what was approved
    before is printed, with its grade. A server that cannot be asked keeps what it has there, and the exit
    code is 1. So it is for a definition in which the scan finds an attack: it is not approved without
    --force.

    With --check nothing is written. The exit code is 0 if the lock has what the servers offer, 1 if it
    differs, and 2 if a server could not be asked. Without a terminal, the difference is on standard output as
    JSON, and on standard error in words.
    """
    out = claim_stdout()
    with verdict_or_none(out):
        try:
            servers = open_servers(config, names)
            offers = servers.ask()
            review = servers.review(offers)
            compared = {alias: _compare(review, alias) for alias in offers}
            gone = [] if names else sorted(servers.pins.servers.keys() - servers.declared.keys())
            is_written = not check and _write(servers, compared, gone, is_forced=force)
        except (*START_ERRORS, StoreError) as error:
            raise stop_with(error) from None
        words = _words(compared, gone, is_check=check, is_forced=force)
        _print(compared, gone, words, out, is_json=is_json, is_written=is_written)
        if check and not is_json and not out.isatty():
            for line in words:
                say(click.unstyle(line))
        if not check and not force and any(each.has_attack for each in compared.values()):
            say("definitions with hard findings are not approved; read them, or approve them with --force")
            raise click.exceptions.Exit(ExitCode.FAILURE)
        raise click.exceptions.Exit(_exit_code(compared, gone, is_check=check))


def _words(
    compared: Mapping[str, _Compared], gone: list[str], *, is_check: bool, is_forced: bool
) -> list[str]:
    told = report_words if is_check else partial(approved_words, is_forced=is_forced)
    words = [line for alias, each in compared.items() for line in told(alias, each.verdicts, each.problem)]
    return [*words, *(f"{alias}: no longer in the settings" for alias in gone)]


def _print(
    compared: Mapping[str, _Compared],
    gone: list[str],
    words: list[str],
    out: TextIO,
    *,
    is_json: bool,
    is_written: bool,
) -> None:
    data: dict[str, Any] = {
        "servers": [report_data(alias, each.verdicts, each.problem) for alias, each in compared.items()],
        "gone": gone,
        "written": is_written,
    }
    print_data(data, words, out, is_json=is_json)


def _compare(review: PinReview, alias: str) -> _Compared:
    offer = review.offers[alias]
    if isinstance(offer, str):
        return _Compared(None, [], offer)
    return _Compared(offer, differing(review.judge(alias)))


def _write(
    servers: PinnedServers, compared: Mapping[str, _Compared], gone: list[str], *, is_forced: bool
) -> bool:
    """Write what is approved to the lock; return whether there was anything to write."""
    changed: dict[str, ServerDefinitions | None] = dict.fromkeys(gone)
    for alias, each in compared.items():
        if each.observed is not None:
            before = servers.pins.servers.get(alias) or ServerDefinitions()
            changed[alias] = each.observed if is_forced else _approvable(each.observed, each.verdicts, before)
    if changed:
        approve(servers.folder, changed)
    if not compared:
        say("there are no MCP servers in the settings; add one as [mcp.ALIAS]")
    return bool(changed)


def _approvable(
    observed: ServerDefinitions, verdicts: list[PinVerdict], before: ServerDefinitions
) -> ServerDefinitions:
    """Return what is observed, but what was approved before of a definition that looks like an attack."""
    for verdict in verdicts:
        if verdict.is_quarantined:
            key = (verdict.difference.kind, verdict.difference.name)
            observed = observed.merged(*key, before.of(*key))
    return observed


def _exit_code(compared: Mapping[str, _Compared], gone: list[str], *, is_check: bool) -> ExitCode:
    if any(each.problem for each in compared.values()):
        return ExitCode.INVALID if is_check else ExitCode.FAILURE
    is_different = bool(gone) or any(each.verdicts for each in compared.values())
    return ExitCode.FAILURE if is_check and is_different else ExitCode.SUCCESS
