"""The command `portbook` and its verbs. Each is imported only when it runs."""

from __future__ import annotations

import importlib
import os
from functools import partial
from typing import Final

import click

from portbook.cli.interrupted_import import Importing
from portbook.cli.output_and_errors import end_with
from portbook.text.did_you_mean import did_you_mean
from portbook.text.stand_ins import import_server_libraries
from portbook.version import __version__

__all__ = ["CommandGroup", "cli", "main", "run"]


# Stands for a command that does not exist, where a shell asks for what may follow it.
_NOTHING: Final = click.Command("", add_help_option=False)


class CommandGroup(click.Group):
    """A group that suggests a verb where there is none of that name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that the first argument names; a usage error has the nearest one."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and ctx.resilient_parsing:
            return name, _NOTHING, args[1:]  # a person who presses Tab gets nothing to choose, and no error
        if name not in known and not name.startswith("-"):
            hint = did_you_mean(name, known, f"`{ctx.command_path} --help` lists the commands")
            raise click.UsageError(f"there is no command {name[:80]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; an error that does not tell its context gets that of the verb, whose help it names.

        The context also tells where standard output is, which the verb may have claimed.
        """
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            name = ctx.invoked_subcommand
            verb = None if name is None else self.get_command(ctx, name)
            error.ctx = error.ctx or (ctx if verb is None else click.Context(verb, ctx, name))
            raise


# In the order in which a new user needs them.
_VERBS: Final = {
    "adopt": "Put Portbook in front of the MCP servers of the clients on this machine.",
    "serve": "Serve tools over STDIO, HTTP or both.",
    "call": "Run one call through the boundary and print its result.",
    "check": "Check settings, toolsets and documents without serving.",
    "tools": "List the tools, resources and prompts that would be served.",
    "upstreams": "List and restart the MCP servers behind Portbook.",
    "init": "Write a commented settings file.",
    "fetch": "Fetch an OpenAPI document and pin it by its digest.",
    "pin": "Approve the definitions of MCP servers as they are now, or check them.",
    "scan": "Scan the definitions of MCP servers for attacks on the model.",
    "review": "Review changed definitions of MCP servers, and approve or keep them withheld.",
    "explain": "Show how policy decides a call, without running it.",
    "policy": "Test a policy before it is in force.",
    "approvals": "List, show and decide approvals.",
    "keys": "Create, list and revoke the keys of callers.",
    "store": "Migrate, check, copy and restore the store of approvals, keys and sessions.",
    "audit": "Verify, follow, show and export the execution log.",
    "schema": "Show the official MCP schemas in force, or check a replacement.",
    "validate": "Validate JSON files against their schemas.",
    "diff": "Compare two JSON files, or tell whether a schema change is breaking.",
    "wrap": "Run a program and print its output in an envelope.",
    "envelope": "Verify an envelope: schema, digests, anchors and signature.",
    "export": "Write what registries, desktop clients and other MCP clients need.",
    "doctor": "Show what this installation can do, for a report.",
    "completion": "Print a script that completes commands and tools in a shell.",
}


class _LateGroup(CommandGroup):
    """A group that lists its verbs by name and imports a verb only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        with Importing():
            if cmd_name == "serve":
                import_server_libraries()
            module = "serve_command" if cmd_name == "serve" else cmd_name
            return importlib.import_module(f"portbook.cli.{module}").command

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
    """Run a command under its name, and exit."""
    # Not standalone: click would say "Aborted!" after Ctrl-C, and exit with 1 as after a failure.
    end_with(partial(command.main, prog_name=name, standalone_mode=False))
