"""The command `portbook` and its verbs. Each is imported only when it runs, and TLS when it is used."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from types import ModuleType
from typing import Any, Final

import click

from portbook.cli.exit_codes import ExitCode
from portbook.cli.interrupted_import import EndedByInterrupt
from portbook.text.did_you_mean import did_you_mean
from portbook.version import __version__

__all__ = ["CommandGroup", "cli", "main", "run"]


class CommandGroup(click.Group):
    """A group that suggests a verb where there is none of that name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that the first argument names; a usage error has the nearest one."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            hint = did_you_mean(name, known, f"`{ctx.command_path} --help` lists the commands")
            raise click.UsageError(f"there is no command {name[:80]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


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
        # What an import makes, the process keeps: a collector that looked for cycles in it would find none.
        gc.disable()
        try:
            with EndedByInterrupt():
                if cmd_name == "serve":
                    import_asyncio()
                    _import_jsonschema()
                return importlib.import_module(f"portbook.cli.{cmd_name}").command
        finally:
            gc.freeze()
            gc.enable()

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # tells where standard output is, which the verb may have claimed
            raise

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
    """Run a command under its name; an error of the operating system is one line, and Ctrl-C is none."""
    try:
        # Not standalone: click would say "Aborted!" after Ctrl-C, and exit with 1 as after a failure.
        code = command.main(prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        from portbook.cli.output_and_errors import tell_usage_error  # late: only where there is an error

        tell_usage_error(error)
        sys.exit(error.exit_code)
    except OSError as error:
        with contextlib.suppress(OSError):
            click.echo(f"portbook: error: {error.strerror or error}", err=True)
        os._exit(ExitCode.FAILURE)  # a normal exit would try to flush what cannot be written
    except (click.Abort, KeyboardInterrupt):
        sys.exit(ExitCode.INTERRUPTED)
    sys.exit(code)


# Imports asyncio without TLS, which is imported when something uses it.
#
# asyncio imports `ssl` for itself: a fifth of its memory and of the time that it takes to import. Most
# servers over STDIO never open a TLS connection. Its modules get a stand-in, which imports the module with
# the first use of anything in it. Everybody else who imports `ssl` gets the module itself.
#
# asyncio uses it for every TCP connection that it opens, to refuse sockets of TLS. So what calls HTTP APIs
# and MCP servers over HTTP imports it at the start (`net/dns_and_dial.py`). What remains: a tool that opens
# the first TCP connection of its process with asyncio, and the first one to a receiver of syslog, import it
# then, in the event loop; other calls wait meanwhile, once.

_LATE: Final = ("ssl", "asyncio.sslproto")


class _Late(ModuleType):
    """Stands for a module in the modules that imported it early."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever looks around among modules does not use it
            raise AttributeError(name)
        found = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, found)
        return found


def import_asyncio() -> None:
    """Import asyncio, unless it is there already; TLS only later, unless that is there."""
    if "asyncio" in sys.modules or any(name in sys.modules for name in _LATE):
        return
    stand_ins = {name: _Late(name) for name in _LATE}
    sys.modules.update(stand_ins)
    try:
        asyncio = importlib.import_module("asyncio")
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
    # Where importing a submodule puts it; so does importing the module itself, later.
    vars(asyncio)["sslproto"] = stand_ins["asyncio.sslproto"]


class _EmailOfBuild(ModuleType):
    """Stands for `email.utils` where only the date of a build is read, which nobody reads again."""

    parsedate_to_datetime = staticmethod(str)

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def _import_jsonschema() -> None:
    """Import the library without `email`, which it asks for the time at which it was built, and nothing else.

    That is a dozen modules, with `random` and `calendar`: more than the library takes itself.
    """
    if "jsonschema_rs" in sys.modules or "email.utils" in sys.modules:
        return
    stand_in = _EmailOfBuild("email.utils")
    sys.modules["email.utils"] = stand_in
    try:
        importlib.import_module("jsonschema_rs")
    finally:
        if sys.modules.get("email.utils") is stand_in:
            del sys.modules["email.utils"]
