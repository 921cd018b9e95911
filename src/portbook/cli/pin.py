"""`portbook pin`: approves the definitions of MCP servers as they are now, or checks that they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click

from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option
from portbook.cli.pin_report import differing, report_data, report_words
from portbook.cli.pinned_servers import PinnedServers, open_servers
from portbook.cli.terminal import claim_stdout, print_data, say, stop_with, verdict_or_none
from portbook.pins.pin_lock import approve
from portbook.pins.server_definitions import ServerDefinitions
from portbook.pins.standing import PinVerdict
from portbook.stores.errors import StoreError
from portbook.stores.lock_file import LOCK_NAME

__all__ = ["command"]


@dataclass(frozen=True, slots=True)
class _Compared:
    """One server: what it offers now, and how that differs from what is approved."""

    observed: ServerDefinitions | None
    """None where it could not be asked."""
    verdicts: list[PinVerdict]
    problem: str | None = None


@click.command("pin")
@click.argument("names", metavar="[ALIAS]...", nargs=-1)
@click.option("--check", is_flag=True, help=f"Write nothing; exit with 1 if {LOCK_NAME} differs.")
@json_option()
@config_option
def command(names: tuple[str, ...], *, check: bool, is_json: bool, config: Path | None) -> None:
    """Approve the definitions of MCP servers as they are now.

    Asks every server of the settings, or those named, what it offers, and writes it to portbook.lock beside
    the settings file: tools, prompts and instructions, part by part. What differs from what was approved
    before is printed, with its grade. A server that cannot be asked keeps what it has there.

    With --check nothing is written. The exit code is 0 if the lock has what the servers offer, 1 if it
    differs, and 2 if a server could not be asked.
    """
    out = claim_stdout()
    with verdict_or_none(out):
        try:
            servers = open_servers(config, names)
            compared = {alias: _compare(servers, alias, offer) for alias, offer in servers.ask().items()}
            gone = [] if names else sorted(servers.pins.servers.keys() - servers.declared.keys())
            if not check:
                _write(servers, compared, gone)
        except (*START_ERRORS, StoreError) as error:
            raise stop_with(error) from None
        _print(compared, gone, out, is_json=is_json, is_written=not check)
        raise click.exceptions.Exit(_exit_code(compared, gone, is_check=check))


def _print(
    compared: Mapping[str, _Compared], gone: list[str], out: TextIO, *, is_json: bool, is_written: bool
) -> None:
    data: dict[str, Any] = {
        "servers": [report_data(alias, each.verdicts, each.problem) for alias, each in compared.items()],
        "gone": gone,
        "written": is_written,
    }
    words = [
        line for alias, each in compared.items() for line in report_words(alias, each.verdicts, each.problem)
    ]
    words += [f"{alias}: no longer in the settings" for alias in gone]
    print_data(data, words, out, is_json=is_json)


def _compare(servers: PinnedServers, alias: str, offer: ServerDefinitions | str) -> _Compared:
    if isinstance(offer, str):
        return _Compared(None, [], offer)
    return _Compared(offer, differing(servers.judge(alias, offer)))


def _write(servers: PinnedServers, compared: Mapping[str, _Compared], gone: list[str]) -> None:
    changed: dict[str, ServerDefinitions | None] = dict.fromkeys(gone)
    changed |= {alias: each.observed for alias, each in compared.items() if each.observed is not None}
    if changed:
        approve(servers.folder, changed)
    if not compared:
        say("there are no MCP servers in the settings; add one as [mcp.ALIAS]")


def _exit_code(compared: Mapping[str, _Compared], gone: list[str], *, is_check: bool) -> ExitCode:
    if any(each.problem for each in compared.values()):
        return ExitCode.INVALID if is_check else ExitCode.FAILURE
    is_different = bool(gone) or any(each.verdicts for each in compared.values())
    return ExitCode.FAILURE if is_check and is_different else ExitCode.SUCCESS
