"""`portbook scan`: finds attacks in the definitions of MCP servers, offline and from the text alone."""

from __future__ import annotations

from pathlib import Path

import click

from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option
from portbook.cli.output_and_errors import claim_stdout, say, stop_with, verdict_or_none
from portbook.cli.scan_formats import SCAN_FORMATS, scan_summary
from portbook.cli.scanned_source import ScannedServer, scan_file, scan_servers
from portbook.scan.finding import Tier

__all__ = ["command"]


@click.command("scan")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--format",
    "form",
    type=click.Choice(list(SCAN_FORMATS)),
    default="text",
    show_default=True,
    help="Output format.",
)
@json_option("Print JSON; the same as --format json.")
@config_option
def command(paths: tuple[Path, ...], *, form: str, is_json: bool, config: Path | None) -> None:
    """Scan the definitions of MCP servers for attacks on the model.

    PATHS are lock files, files of definitions in JSON (a list of tools, or an answer to tools/list), or
    settings files (.toml), whose servers are asked what they offer. Without PATHS, the servers of the
    settings are asked. Nothing is sent anywhere else, and no model is used.

    A hard finding is one that no honest definition needs; the definition is withheld unless a person approved
    it. A soft one makes a person look at a change. The exit code is 0 if there is no hard finding, 1 if there
    is one, and 2 if something could not be scanned.
    """
    out = claim_stdout()
    with verdict_or_none(out):
        try:
            servers = _scanned(paths, config)
        except START_ERRORS as error:
            raise stop_with(error) from None
        click.echo(SCAN_FORMATS["json" if is_json else form](servers), out, nl=False)
        out.flush()
        say(scan_summary(servers))
        raise click.exceptions.Exit(_exit_code(servers))


def _scanned(paths: tuple[Path, ...], config: Path | None) -> list[ScannedServer]:
    if not paths:
        return scan_servers(config)
    return [
        server
        for path in paths
        for server in (scan_servers(path) if path.suffix == ".toml" else scan_file(path))
    ]


def _exit_code(servers: list[ScannedServer]) -> ExitCode:
    if any(server.problem is not None for server in servers):
        return ExitCode.INVALID
    is_hard = any(each.finding.tier is Tier.HARD for server in servers for each in server.found)
    return ExitCode.FAILURE if is_hard else ExitCode.SUCCESS
