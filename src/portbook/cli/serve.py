"""`portbook serve`: open the doors, and close them without losing a call."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portbook.app.assemble import App, assemble
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, common_options, debug_option, settings_from, toolsets_argument
from portbook.cli.output_queue import drain_output, occupy_standard_error, queued_output
from portbook.cli.reload import reload_rules
from portbook.cli.served_counts import served_counts
from portbook.cli.stop_signals import Door, stop_on_signals
from portbook.cli.terminal import say, stop_with
from portbook.doors.ndjson import NdjsonDoor
from portbook.doors.stdio import Reader, StandardStreams, Writer, claim_standard_streams
from portbook.model import Arrival
from portbook.settings import Settings

if TYPE_CHECKING:
    from portbook.cli.inherited_socket import Inherited

__all__ = ["command", "serve_until_done"]


@click.command("serve")
@toolsets_argument
@click.option("--stdio", is_flag=True, help="Serve standard input and output, one message per line.")
@click.option(
    "--http", is_flag=True, help="Serve HTTP: MCP at /mcp, calls at /execute and /rpc, pages at / and /docs."
)
@click.option("--host", help="Address of the HTTP server.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port of the HTTP server; 0 picks a free one.  [default: 8765]")
@click.option(
    "--schema-override",
    metavar="URI",
    help="File or address of a schema that replaces the embedded official one.",
)
@click.option(
    "--reload", is_flag=True, help="Over HTTP: take up toolsets, settings and documents when they change."
)
@debug_option
@common_options
def command(
    toolsets: tuple[str, ...],
    *,
    reload: bool,
    debug: bool,
    stdio: bool,
    http: bool,
    host: str | None,
    port: int | None,
    schema_override: str | None,
    config: Path | None,
    log_dir: Path | None,
    deterministic_ids: bool | None,
) -> None:
    """Serve tools over STDIO, HTTP or both.

    TOOLSETS are Python files or modules with a Toolset. Without --stdio and --http: HTTP if standard input is
    a terminal, STDIO if it is a pipe.
    """
    if not stdio and not http:
        http = sys.stdin.isatty()
        stdio = not http
    if reload and stdio:
        raise click.UsageError("--reload is for --http; over STDIO, start the client again")
    flags = {"server.host": host, "server.port": port, "schema_override_uri": schema_override}
    given = partial(settings_from, log_dir=log_dir, deterministic_ids=deterministic_ids, flags=flags)
    if reload:
        raise click.exceptions.Exit(_serve_and_watch(given, config))
    inherited = _inherited()
    gc.disable()  # until it serves: whatever a start makes, it keeps
    occupy_standard_error()
    # Before any tool is loaded: what its module prints must not mix with the frames.
    try:
        streams = claim_standard_streams() if stdio else None
    except OSError as error:
        raise stop_with(error) from None
    with queued_output():
        try:
            settings = given(config, toolsets=toolsets, debug=debug)
            listener = _listen(settings, inherited) if http else None
            is_exposed = listener is not None and not _is_loopback(settings.host)
            app = assemble(
                settings,
                is_exposed=is_exposed,
                warn=lambda text: say(f"warning: {text}"),
                is_server=True,
            )
        except (*START_ERRORS, OSError) as error:
            raise stop_with(error) from None
        for warning in app.warnings:
            say(f"warning: {warning}")
        # A reload reads the same file; if it is gone by then, the rules stay as they are.
        load = partial(given, settings.config)
        on_ready = partial(_tell_ready, inherited, settings)
        _run(_serve(app, streams, listener, load=load, on_ready=on_ready), with_http=http)


async def _serve(
    app: App,
    streams: StandardStreams | None,
    listener: socket.socket | None,
    *,
    load: Callable[[], Settings],
    on_ready: Callable[[], None],
) -> None:
    doors: list[Door] = []
    if listener is not None:
        doors.append(_http_door(app, listener))
    if streams is not None:
        arrival = Arrival("stdio", "stdio", os.environ.pop("PORTBOOK_KEY", None))
        doors.append(NdjsonDoor(app.boundary, Reader(streams.incoming), Writer(streams.outgoing), arrival))
    stop_on_signals(doors, before=app.approvals.stop_waiting)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload_rules, app, load)
    on_ready()
    if listener is not None:
        say(_invitation(app, listener))
    # What is there now stays. The collector need not look at it again, however many tools there are.
    gc.freeze()
    gc.enable()
    try:
        await asyncio.gather(*(serve_until_done(door, doors) for door in doors))
    finally:
        await app.close()
    if app.executor.has_strays:
        # Every call is answered and recorded; the loop would wait for threads that do not end.
        drain_output()
        os._exit(ExitCode.SUCCESS)


async def serve_until_done(door: Door, doors: list[Door]) -> None:
    """Serve one door. When it ends (its input ended, or its client is gone), stop all doors."""
    try:
        with contextlib.suppress(BrokenPipeError):
            await door.serve()
    finally:
        for other in doors:
            other.stop()


def _http_door(app: App, listener: socket.socket) -> Door:
    # Only where there is an HTTP door: its routes and pages are not needed otherwise.
    from portbook.doors.http.route_table import routes_of
    from portbook.doors.http.server.http_server import HttpServer

    routes = routes_of(app, warn=lambda text: say(f"warning: {text}"))
    return HttpServer(routes, [listener], on_stop=app.changes.close)


def _invitation(app: App, listener: socket.socket) -> str:
    bound, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(str(bound), str(bound))  # noqa: S104 - an address to open, not to bind
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    served = served_counts(app.catalog)
    return f"serving {served}; open {url}/ or connect an MCP client to {url}/mcp; Ctrl-C stops"


def _serve_and_watch(given: Callable[..., Settings], config: Path | None) -> int:
    """Watch the files of a server in a child process; return its exit code."""
    from portbook.cli.reloading_server import ReloadingServer, command_of_this_process  # late: only here

    try:
        listener = _listen(given(config), None)
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    return ReloadingServer(listener, command_of_this_process()).run()


def _inherited() -> Inherited | None:
    """Return the socket of the process that watches, if one started this one."""
    if "_PORTBOOK_TAKE_OVER" not in os.environ:
        return None
    from portbook.cli.inherited_socket import Inherited  # late: only where a process watches

    return Inherited.of_environment()


def _tell_ready(inherited: Inherited | None, settings: Settings) -> None:
    if inherited is not None:
        from portbook.cli.reloading_server import tell_ready  # late: only where a process watches
        from portbook.cli.watched_files import watched_files

        tell_ready(inherited.pipe, watched_files(settings))


def _listen(settings: Settings, inherited: Inherited | None) -> socket.socket:
    if inherited is not None:
        return socket.socket(fileno=inherited.listener)
    from portbook.doors.http.server.listeners import bind

    try:
        return bind(settings.host, settings.port)
    except OSError as error:
        hint = (
            "the port is in use; choose a different one with --port"
            if error.errno == errno.EADDRINUSE
            else "check --host"
        )
        raise OSError(error.errno, f"cannot listen on {settings.host} port {settings.port}: {hint}") from None


def _is_loopback(host: str) -> bool:
    from portbook.doors.http.server.listeners import is_loopback

    return is_loopback(host)


def _run(main: Coroutine[Any, Any, None], *, with_http: bool) -> None:
    if with_http:
        import uvloop

        uvloop.run(main)
    else:
        asyncio.run(main)
