"""`portbook serve`: open the doors, and close them without losing a call."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.audit.memory_sink import NoSink
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, common_options, debug_option, settings_from, toolsets_argument
from portbook.cli.output_queue import drain_output, occupy_standard_error, queued_output
from portbook.cli.served_counts import served_counts
from portbook.cli.stop_signals import Door, stop_on_signals
from portbook.cli.terminal import say, stop_with
from portbook.doors.ndjson import NdjsonDoor
from portbook.doors.stdio import Reader, StandardStreams, Writer, claim_standard_streams
from portbook.model import Arrival
from portbook.settings import Settings

if TYPE_CHECKING:
    from portbook.cli.http_door import HttpDoor
    from portbook.cli.inherited_socket import Inherited

__all__ = ["command", "serve_until_done"]

# How many new objects the collector lets come together before it looks for cycles among them. A batch of
# calls holds a thousand until it is answered: with Python's 700, it would look at every batch in vain.
_YOUNG: Final = 10_000


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
    "--server",
    "servers",
    metavar="ALIAS",
    multiple=True,
    help="Of the MCP servers in the settings, serve this one and no other. Repeatable.",
)
@click.option("--reload", is_flag=True, help="Take up toolsets, settings and documents when they change.")
@debug_option
@common_options
def command(
    toolsets: tuple[str, ...],
    *,
    servers: tuple[str, ...],
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
    if reload and stdio and http:
        raise click.UsageError("--reload is for one door; leave out --stdio or --http")
    flags = {"server.host": host, "server.port": port, "schema_override_uri": schema_override}
    given = partial(
        settings_from, log_dir=log_dir, deterministic_ids=deterministic_ids, flags=flags, servers=servers
    )
    if reload and http:
        raise click.exceptions.Exit(_serve_and_watch(given, config))
    inherited, is_trial = _inherited(), _is_trial()
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
            http_door = _http_door(settings, inherited) if http else None
            app = assemble(
                settings,
                is_exposed=http_door is not None and http_door.is_exposed,
                warn=lambda text: say(f"warning: {text}"),
                sink=NoSink() if is_trial else None,
                is_server=True,
            )
        except (*START_ERRORS, OSError) as error:
            raise stop_with(error) from None
        if is_trial:
            asyncio.run(app.close())
            return
        for warning in app.warnings:
            say(f"warning: {warning}")
        # A reload reads the same file; if it is gone by then, the rules stay as they are.
        load = partial(given, settings.config)
        if reload:
            assert streams is not None
            again = partial(given, settings.config, toolsets=toolsets, debug=debug)
            _run(_serve_reloading(app, settings, streams, load, again), with_http=False)
            return
        on_ready = partial(_tell_ready, inherited, settings, app)
        _run(_serve(app, streams, http_door, load=load, on_ready=on_ready), with_http=http)


async def _serve(
    app: App,
    streams: StandardStreams | None,
    http_door: HttpDoor | None,
    *,
    load: Callable[[], Settings],
    on_ready: Callable[[list[Door]], None],
) -> None:
    doors: list[Door] = []
    if http_door is not None:
        doors.append(http_door.open(app, warn=lambda text: say(f"warning: {text}")))
    if streams is not None:
        doors.append(_stdio_door(app, streams))
    reload_certificate = None if http_door is None else http_door.reload_certificate
    _heed_signals(app, doors, load, reload_certificate)
    on_ready(doors)
    if http_door is not None:
        say(_invitation(app, http_door))
    # What is there now stays. The collector need not look at it again, however many tools there are.
    gc.freeze()
    gc.set_threshold(_YOUNG)
    gc.enable()
    app.start()
    try:
        await asyncio.gather(*(serve_until_done(door, doors) for door in doors))
    finally:
        await app.close()
        if http_door is not None:
            http_door.close()
    if app.executor.has_strays:
        # Every call is answered and recorded; the loop would wait for threads that do not end.
        drain_output()
        os._exit(ExitCode.SUCCESS)


async def _serve_reloading(
    app: App,
    settings: Settings,
    streams: StandardStreams,
    load: Callable[[], Settings],
    load_again: Callable[[], Settings],
) -> None:
    """Serve standard input and output, and take up the files that change."""
    from portbook.cli.reloading_server import (
        command_of_this_process,  # late, both: only where files are watched
    )
    from portbook.cli.reloading_stdio import ReloadingStdio

    door = _stdio_door(app, streams)
    reloading = ReloadingStdio(
        app,
        settings,
        door,
        command_of_this_process(),
        load_again,
        lambda new: _heed_signals(new, [door], load, None),
    )
    _heed_signals(app, [door], load, None)
    gc.set_threshold(_YOUNG)
    gc.enable()  # without a freeze: what is replaced should go
    app.start()
    reloading.start()
    try:
        await serve_until_done(door, [door])
    finally:
        await reloading.close()
        await reloading.app.close()
    if reloading.app.executor.has_strays:
        drain_output()
        os._exit(ExitCode.SUCCESS)


def _stdio_door(app: App, streams: StandardStreams) -> NdjsonDoor:
    arrival = Arrival("stdio", "stdio", os.environ.pop("PORTBOOK_KEY", None))
    return NdjsonDoor(app.boundary, Reader(streams.incoming), Writer(streams.outgoing), arrival)


def _heed_signals(
    app: App,
    doors: list[Door],
    load: Callable[[], Settings],
    reload_certificate: Callable[[], None] | None,
) -> None:
    stop_on_signals(doors, before=app.approvals.stop_waiting)

    def reload() -> None:
        from portbook.cli.reload import reload_rules  # late: few servers are ever told to

        reload_rules(app, load, reload_certificate)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)


async def serve_until_done(door: Door, doors: list[Door]) -> None:
    """Serve one door. When it ends (its input ended, or its client is gone), stop all doors."""
    try:
        with contextlib.suppress(BrokenPipeError):
            await door.serve()
    finally:
        for other in doors:
            other.stop()


def _http_door(settings: Settings, inherited: Inherited | None) -> HttpDoor:
    from portbook.cli.http_door import HttpDoor  # only where it is served: its routes and pages take time

    return HttpDoor(settings, None if inherited is None else inherited.listener)


def _serve_and_watch(given: Callable[..., Settings], config: Path | None) -> int:
    """Watch the files of a server in a child process; return its exit code."""
    from portbook.cli.http_door import bound  # late, here and below: only where files are watched
    from portbook.cli.reloading_server import ReloadingServer, command_of_this_process

    try:
        settings = given(config)
        if settings.socket is not None:
            raise settings.complain(
                ("server", "socket"), "cannot be reloaded; leave it out, or leave out --reload"
            )
        listener = bound(settings)
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    return ReloadingServer(listener, command_of_this_process()).run()


def _inherited() -> Inherited | None:
    """Return the socket of the process that watches, if one started this one."""
    if "_PORTBOOK_TAKE_OVER" not in os.environ:
        return None
    from portbook.cli.inherited_socket import Inherited  # late: only where a process watches

    inherited = Inherited.of_environment()
    if inherited is not None:
        inherited.end_with_the_watcher()
    return inherited


def _is_trial() -> bool:
    """Return whether the process that serves only wants to know whether its changed files can be loaded."""
    if "_PORTBOOK_TRIAL" not in os.environ:
        return False
    from portbook.cli.reload_trial import is_trial  # late: only after a change

    return is_trial()


def _tell_ready(inherited: Inherited | None, settings: Settings, app: App, doors: list[Door]) -> None:
    if inherited is not None:
        from portbook.cli.reloading_server import leave_when_superseded  # late, here and below: seldom needed
        from portbook.cli.served_lists import served_lists
        from portbook.cli.starting_server import Ready, tell_ready
        from portbook.cli.watched_files import watched_files

        leave_when_superseded(app, doors)
        at = None if settings.socket is None else str(settings.socket)
        address = {"server.host": settings.host, "server.port": settings.port, "server.socket": at}
        tell_ready(
            inherited.pipe, Ready(watched_files(settings), dict(served_lists(app.catalog)), {**address})
        )


def _invitation(app: App, http_door: HttpDoor) -> str:
    served, place = served_counts(app.catalog), http_door.place
    if not place.startswith("http"):
        return f"serving {served} at {place}; Ctrl-C stops"
    return f"serving {served}; open {place}/ or connect an MCP client to {place}/mcp; Ctrl-C stops"


def _run(main: Coroutine[Any, Any, None], *, with_http: bool) -> None:
    if with_http:
        import uvloop

        uvloop.run(main)
    else:
        asyncio.run(main)
