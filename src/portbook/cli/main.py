"""The command `portbook` and its verbs. Each verb is imported only when it is asked for."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import Final

import click

from portbook.cli.exit_codes import ExitCode
from portbook.version import __version__

__all__ = ["cli", "main", "run"]

# The order is that of a newcomer's first minutes.
_VERBS: Final = {
    "serve": "Serve tools over STDIO, HTTP or both.",
    "call": "Run one call through the boundary and print its result.",
    "tools": "List the tools, resources and prompts that would be served.",
    "init": "Write a commented settings file to start from.",
    "explain": "Show what policy says of a call, without making it.",
    "policy": "Try a policy out before it is in force.",
    "approvals": "List, show and decide what calls wait for.",
    "keys": "Make, list and revoke keys of callers.",
    "audit": "Verify, follow, show and export the execution log.",
    "schema": "Show the official MCP schemas in force, or check one that would replace them.",
    "validate": "Check files by their schemas.",
    "diff": "Show what is different between two files, or whether a schema's change breaks.",
    "wrap": "Run a program and print what it printed in an envelope.",
    "envelope": "Check whether an envelope holds what it says.",
}


class _LateGroup(click.Group):
    """A group that knows its verbs by name, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        return importlib.import_module(f"portbook.cli.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_VERBS.items()))


@click.group(cls=_LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="portbook", message="%(prog)s %(version)s")
def cli() -> None:
    """Check, run and record every call that an agent makes to a tool."""
    if os.environ.get("NO_COLOR"):
        click.get_current_context().color = False


def main() -> None:
    """Run the command line."""
    run(cli, "portbook")


def run(command: click.Command, name: str) -> None:
    """Run a command under its name; what the system refuses is said in one line."""
    try:
        command(prog_name=name)
    except OSError as error:
        with contextlib.suppress(OSError):
            click.echo(f"portbook: error: {error.strerror or error}", err=True)
        os._exit(ExitCode.FAILURE)  # the ordinary way out would try to flush what cannot be written
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
