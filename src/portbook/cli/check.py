"""`portbook check`: everything that `portbook serve` would refuse or warn of, at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.app.start_warnings import blocked_by
from portbook.audit.memory_sink import NoSink
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from, toolsets_argument
from portbook.cli.output_and_errors import claim_stdout, print_json, problem_as_data, problems_of, say
from portbook.cli.stop_and_reload_signals import served_counts
from portbook.escaping import escaped_lines
from portbook.settings import BadSettings, ProblemList, Settings
from portbook.text.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from portbook.pins.approved_definitions_in_lock import PinLock
    from portbook.upstreams.mcp_table import DeclaredUpstream

__all__ = ["command"]


class _Checked(NamedTuple):
    errors: list[str]
    warnings: list[str]
    app: App | None = None


@click.command("check")
@toolsets_argument
@json_option("Print JSON: errors and warnings, each with file, line and column.")
@config_option
def command(toolsets: tuple[str, ...], *, is_json: bool, config: Path | None) -> None:
    """Check settings, toolsets and documents, and print everything that `serve` would refuse or warn of.

    TOOLSETS are Python files or modules with a Toolset. The exit code is 0 if there is nothing to say, 1 if
    there are warnings alone, and 2 if `serve` would refuse to start.
    """
    out = claim_stdout()
    checked = _check(config, toolsets)
    if is_json:
        errors, warnings = ([problem_as_data(each) for each in texts] for texts in checked[:2])
        print_json({"ok": not checked.errors, "errors": errors, "warnings": warnings}, out, is_ascii=True)
    else:
        for kind, texts in (("error", checked.errors), ("warning", checked.warnings)):
            for text in texts:
                click.echo(escaped_lines(_line(kind, text)), out)
        say(_summary(checked))
    raise click.exceptions.Exit(_exit_code(checked))


def _check(config: Path | None, toolsets: tuple[str, ...]) -> _Checked:
    try:
        settings = settings_from(config, toolsets=toolsets)
    except BadSettings as error:
        if error.rest is None:
            return _Checked(list(error.problems), [])
        rest: Settings = error.rest._replace(more_toolsets=toolsets)
        return _Checked([*error.problems, *_check_settings(rest).errors], [])
    except (*START_ERRORS, OSError) as error:
        return _Checked(problems_of(error), [])
    return _check_settings(settings)


def _check_settings(settings: Settings) -> _Checked:
    try:
        # Without records and without a door: nothing is written, and nobody can call.
        app = assemble(settings, is_exposed=_is_exposed(settings), sink=NoSink(), is_server=True)
    except (*START_ERRORS, OSError) as error:
        return _Checked([*problems_of(error), *_problems_of_door(settings)], [])
    asyncio.run(app.close())
    errors = [*_unwritable(settings), *_problems_of_door(settings)]
    return _Checked(errors, [*app.warnings, *_doubts_of_servers(settings)], app)


def _doubts_of_servers(settings: Settings) -> list[str]:
    if not settings.mcp_tables:
        return []
    from portbook.app.servers_asked_once import declared_servers  # late: few settings have servers

    return _server_doubts(settings, declared_servers(settings), os.environ)


def _problems_of_door(settings: Settings) -> list[str]:
    """Return why the HTTP door could not be opened: host, socket, proxies, certificate or workers."""
    # Late: only here.
    from portbook.cli.http_door import usable_certificate, usable_host, usable_socket_path
    from portbook.cli.worker_count import usable_worker_count

    problems = ProblemList(BadSettings)
    for require in (usable_host, usable_socket_path, usable_certificate, usable_worker_count):
        with problems:
            require(settings)
    return problems.texts()


def _is_exposed(settings: Settings) -> bool:
    from portbook.doors.http.server.listeners_of_workers import is_loopback  # late: only here

    return not is_loopback(settings.host)


def _unwritable(settings: Settings) -> list[str]:
    """Return the settings that name a place which cannot be written."""
    wanted = {("audit", "log_dir"): settings.log_dir}
    if settings.store_url is None:
        wanted["store", "path"] = settings.store_path.parent
    blocked = {path: blocked_by(folder) for path, folder in wanted.items()}
    return [
        str(settings.complain(path, f"cannot be written below {place}; check its rights"))
        for path, place in blocked.items()
        if place is not None
    ]


def _exit_code(checked: _Checked) -> ExitCode:
    if checked.errors:
        return ExitCode.INVALID
    return ExitCode.FAILURE if checked.warnings else ExitCode.SUCCESS


def _summary(checked: _Checked) -> str:
    if checked.app is None or checked.errors or checked.warnings:
        return f"{_counted(checked.errors, 'error')}, {_counted(checked.warnings, 'warning')}"
    return f"nothing to say; `portbook serve` would serve {served_counts(checked.app.catalog)}"


def _counted(texts: list[str], noun: str) -> str:
    return f"{len(texts)} {noun}" if len(texts) == 1 else f"{len(texts)} {noun}s"


def _line(kind: str, text: str) -> str:
    """Return a problem as compilers print one: the place, the kind, the message."""
    found = problem_as_data(text)
    place = f"{found['file']}:{found['line']}:{found['column']}: " if found["file"] else ""
    return f"{place}{kind}: {found['message']}"


# What is likely to be wrong with the MCP servers of the settings, found without starting one.


def _server_doubts(
    settings: Settings, servers: Iterable[DeclaredUpstream], environ: Mapping[str, str]
) -> list[str]:
    """Return what would keep servers from being served, each with file and line.

    Raises `BadLock` where the lock cannot be used.
    """
    from portbook.pins.approved_definitions_in_lock import PinLock  # late: few settings have servers

    lock = PinLock.read(settings.folder)
    return [doubt for server in servers for doubt in _doubts_of(settings, server, lock, environ)]


def _doubts_of(
    settings: Settings, server: DeclaredUpstream, lock: PinLock, environ: Mapping[str, str]
) -> Iterator[str]:
    alias, known = server.alias, lock.servers.get(server.alias)
    if known is None and server.pins.trust == "lock":
        place = settings.position_of("mcp", alias)
        yield f"{place}: nothing of mcp.{alias} is approved, so nothing is served; run `portbook pin {alias}`"
    if server.command and not _is_there(server, environ):
        place = settings.position_of("mcp", alias, "command")
        yield f"{place}: mcp.{alias}.command: there is no such program; install it, or correct its name"
    if server.cwd is not None and not server.cwd.is_dir():
        place = settings.position_of("mcp", alias, "cwd")
        yield f"{place}: mcp.{alias}.cwd is not a folder; create it, or correct the path"
    for key, sources in (("env", server.env), ("headers", server.headers)):
        for name, source in sources.items():
            if source.env is not None and source.env not in environ:
                place = settings.position_of("mcp", alias, key, name)
                yield f"{place}: the environment variable {source.env} is not set; mcp.{alias} cannot start"
    names = [] if known is None else list(known.tools)
    for name in server.effects if names else ():
        if name not in names:
            place = settings.position_of("mcp", alias, "effects", name)
            hint = did_you_mean(name, names, f"`portbook pin --check {alias}` shows what it has")
            yield f"{place}: mcp.{alias} has no approved tool of this name; {hint}"


def _is_there(server: DeclaredUpstream, environ: Mapping[str, str]) -> bool:
    """Return whether the program of a server can be found, as it is when the server is started."""
    from shutil import which  # late: only where servers are started

    program = server.command[0]
    if "/" in program:
        return which(str(server.starts_in / program)) is not None
    source = server.env.get("PATH")
    if source is not None and source.text is None:
        return True  # known only once the server is started
    return which(program, path=environ.get("PATH", "") if source is None else source.text) is not None
