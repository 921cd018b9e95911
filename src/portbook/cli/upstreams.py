"""`portbook upstreams`: the MCP servers behind Portbook, how they are doing, and restarts of them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, TextIO

import click

from portbook.app.store_from_settings import store_of
from portbook.app.tools_from_settings import collect_servers
from portbook.cli.main import CommandGroup
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, print_data, print_json, say, stop_with
from portbook.clock import SystemClock
from portbook.escaping import escaped
from portbook.model import JSON, JSONObject
from portbook.settings import Settings
from portbook.stores.upstream_status_and_offers import UpstreamStore
from portbook.text.did_you_mean import did_you_mean
from portbook.upstreams.mcp_table import DeclaredUpstream

__all__ = ["command"]

_MAX_ERROR = 300


@click.group("upstreams", cls=CommandGroup, invoke_without_command=True)
@json_option("Print JSON, even on a terminal.")
@config_option
@click.pass_context
def command(context: click.Context, *, is_json: bool, config: Path | None) -> None:
    """List the MCP servers behind Portbook: state, revision, tools, last error and restarts.

    A running `portbook serve` says every half second how its servers are doing; without one, they are not
    running.
    """
    if context.invoked_subcommand is not None:
        context.obj = config
        return
    out = claim_stdout()
    try:
        settings = settings_from(config)
        rows = _rows(settings)
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    if is_json or not out.isatty():
        print_json({"upstreams": rows}, out)
    else:
        _print(rows, out)


@command.command("restart")
@click.argument("name")
@json_option()
@click.pass_obj
def restart(config: Path | None, name: str, *, is_json: bool) -> None:
    """Restart the MCP server NAME, in every running process."""
    out = claim_stdout()
    try:
        settings = settings_from(config)
        _named(settings, name)
        is_running = any(row["name"] == name and "process" in row for row in _rows(settings))
        if is_running:
            store = store_of(settings)
            try:
                asyncio.run(UpstreamStore(store, SystemClock()).ask_restart(name))
            finally:
                store.close()
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    if not is_running:
        raise click.ClickException(f"no `portbook serve` runs {name} now, so there is nothing to restart")
    words = [f"{name} is restarted by every process that runs it"]
    print_data({"restarting": name}, words, out, is_json=is_json)


@command.command("sandbox")
@click.argument("name")
@json_option("Print JSON, even on a terminal.")
@click.pass_obj
def sandbox(config: Path | None, name: str, *, is_json: bool) -> None:
    """Start the MCP server NAME once, see what it touches, and propose a sandbox for it.

    It is started without a sandbox and asked what it offers; none of its tools is called.
    """
    from portbook.app.sandbox_trial import NoTrial, try_out
    from portbook.sandbox.proposal import sandbox_line

    out = claim_stdout()
    try:
        settings = settings_from(config)
        declared = _named(settings, name)
        proposed = try_out(settings, [declared], os.environ)[name]
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    if isinstance(proposed, NoTrial):
        raise click.ClickException(f"{name}: {proposed}")
    line = sandbox_line(proposed, declared.folder)
    if is_json or not out.isatty():
        print_json({"name": name, **proposed.as_data(), "line": line}, out)
    else:
        click.echo(line, out)
    say(f"put this line into [mcp.{name}]; a tool that needs more fails, and says so")


def _named(settings: Settings, name: str) -> DeclaredUpstream:
    """Return the server with this alias. Raises `UsageError` where there is none."""
    known = {each.alias: each for each in collect_servers(settings)}
    if name not in known:
        hint = did_you_mean(name, list(known), "`portbook upstreams` lists them")
        raise click.UsageError(f"there is no MCP server {name[:80]!r}; {hint}")
    return known[name]


def _rows(settings: Settings) -> list[JSONObject]:
    """Return what running processes say of their servers, and the servers that none of them runs."""
    store = store_of(settings)
    try:
        found = UpstreamStore(store, SystemClock()).statuses()
    finally:
        store.close()
    running = {str(each["name"]) for each in found}
    for declared in collect_servers(settings):
        if declared.alias not in running:
            found.append({"name": declared.alias, "transport": declared.transport, "state": "not running"})
    return sorted(found, key=lambda row: str(row["name"]))


def _counted(count: JSON, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _print(rows: list[JSONObject], out: TextIO) -> None:
    width = max((len(str(row["name"])) for row in rows), default=0)
    for row in rows:
        name = click.style(str(row["name"]).ljust(width), bold=True)
        told: list[Any] = [str(row["state"]).ljust(11)]
        if row.get("revision"):
            told.append(row["revision"])
        if "tools" in row:
            told.append(_counted(row["tools"], "tool"))
        if row.get("withheld"):
            told.append(f"{row['withheld']} withheld")
        if row.get("restarts"):
            told.append(_counted(row["restarts"], "restart"))
        click.echo(f"{name}  {'  '.join(map(str, told))}", out)
        if row.get("last_error"):
            click.echo(f"{' ' * width}  {escaped(str(row['last_error']), _MAX_ERROR)}", out)
