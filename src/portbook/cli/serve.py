"""`portbook serve`: open the doors, and close them without losing a call."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, settings_from
from portbook.cli.output_and_errors import say, stop_with
from portbook.cli.stderr_queue import drain_output, occupy_standard_error, queued_output
from portbook.cli.stop_and_reload_signals import Door, leave, on_signal, served_counts, stop_on_signals
from portbook.doors.ndjson import NdjsonDoor
from portbook.doors.stdio import ClientDoesNotRead, Reader, StandardStreams, Writer, claim_standard_streams
from portbook.model import Arrival
from portbook.settings import BadSettings, Settings
from portbook.text.did_you_mean import did_you_mean
from portbook.text.stand_ins import late_module

if TYPE_CHECKING:
    import click

    from portbook.app.running_app import ClosableSink
    from portbook.cli.http_door import HttpDoor
    from portbook.cli.serve_reload import Inherited
    from portbook.cli.worker_process import WorkerLink
    from portbook.doors.http.server.http_server_and_shutdown import HttpServer
    from portbook.exception_place import Fault
else:
    click = late_module("click")  # a plain line of `serve` is read without it

__all__ = ["serve", "serve_until_done"]

# How many new objects the collector lets come together before it looks for cycles among them. A batch of
# calls holds a thousand until it is answered: with Python's 700, it would look at every batch in vain.
_YOUNG: Final = 10_000


def serve(
    toolsets: tuple[str, ...],
    *,
    servers: tuple[str, ...] = (),
    reload: bool = False,
    debug: bool = False,
    stdio: bool = False,
    http: bool = False,
    host: str | None = None,
    port: int | None = None,
    workers: str | None = None,
    schema_override: str | None = None,
    config: Path | None = None,
    log_dir: Path | None = None,
    deterministic_ids: bool | None = None,
) -> None:
    """Serve until the input of a client ends, or a signal does; the arguments are the options of the verb."""
    stdio, http = _doors(stdio=stdio, http=http, reload=reload, has_workers=workers is not None)
    flags = {
        "server.host": host,
        "server.port": port,
        "server.workers": int(workers) if workers and workers.isdecimal() else workers,
        "schema_override_uri": schema_override,
    }
    given = partial(
        _settings_from, servers, log_dir=log_dir, deterministic_ids=deterministic_ids, flags=flags
    )
    if reload:
        # Bytecode is as old as a second: of two quick changes, it could be that of the first.
        sys.dont_write_bytecode = True
    if reload and http:
        raise click.exceptions.Exit(_serve_and_watch(given, config))
    inherited, is_trial = _inherited(), _is_trial()
    link = _link()
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
            if http and link is None and settings.worker_processes != 1:
                _supervise_workers(settings, with_stdio=stdio, is_reloading=inherited is not None)
            http_door = _http_door(settings, inherited, link) if http else None
            warn = _warn if link is None else link.warn
            app = assemble(
                settings,
                is_exposed=http_door is not None and http_door.is_exposed,
                warn=warn,
                on_fault=None if link is None else _report_fault_as(link.name, settings),
                sink=_no_sink() if is_trial else None,
                is_server=True,
                is_shared=link is not None,
            )
        except (*START_ERRORS, OSError) as error:
            raise stop_with(error) from None
        if is_trial:
            asyncio.run(app.close())
            return
        for warning in app.warnings if link is None or link.tells_doubts else ():
            say(f"warning: {warning}")
        # A reload reads the same file; if it is gone by then, the rules stay as they are.
        load = partial(given, settings.config)
        if reload:
            assert streams is not None
            again = partial(given, settings.config, toolsets=toolsets, debug=debug)
            _run(_serve_reloading(app, settings, streams, load, again), with_http=False)
            return
        on_ready = partial(_tell_ready, inherited, settings, app)
        serving = _serve(app, streams, http_door, load=load, on_ready=on_ready, warn=warn, link=link)
        _run(serving, with_http=http)


def _report_fault_as(speaker: str, settings: Settings) -> Callable[[Fault], None]:
    """Return what prints an exception of a tool, with the name of the process that ran it."""
    from portbook.app.fault_report import report_fault

    return partial(report_fault, with_traceback=settings.tracebacks, speaker=speaker)


def _settings_from(servers: tuple[str, ...], config: Path | None, **given: Any) -> Settings:
    """Return the settings in force; of their MCP servers only those that --server names, if it names any.

    Raises `BadSettings` for what cannot be used.
    """
    settings = settings_from(config, **given)
    for alias in servers:
        if alias not in settings.mcp_tables:
            hint = did_you_mean(alias, sorted(settings.mcp_tables), "add it as [mcp.ALIAS]")
            raise BadSettings(f"--server: there is no MCP server {alias!r} in the settings; {hint}")
    tables = {alias: each for alias, each in settings.mcp_tables.items() if not servers or alias in servers}
    return settings._replace(mcp_tables=tables)


def _doors(*, stdio: bool, http: bool, reload: bool, has_workers: bool) -> tuple[bool, bool]:
    """Return whether to serve standard input, and HTTP.

    Raises `UsageError` for options that do not go together.
    """
    if not stdio and not http:
        http = sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison] # closed
        stdio = not http
    if reload and stdio and http:
        raise click.UsageError("--reload is for one door; leave out --stdio or --http")
    if has_workers and not http:
        raise click.UsageError("--workers is for HTTP; add --http")
    return stdio, http


async def _serve(
    app: App,
    streams: StandardStreams | None,
    http_door: HttpDoor | None,
    *,
    load: Callable[[], Settings],
    on_ready: Callable[[list[HttpServer]], None],
    warn: Callable[[str], None],
    link: WorkerLink | None,
) -> None:
    servers = [] if http_door is None else [http_door.open(app, warn)]
    doors: list[Door] = [*servers]
    if streams is not None:
        doors.append(_stdio_door(app, streams))
    reload_certificate = None if http_door is None else http_door.reload_certificate
    _heed_signals(app, doors, load, reload_certificate)
    on_ready(servers)
    if link is not None:
        _join(link, app, servers)
    elif http_door is not None:
        say(http_door.invitation(served_counts(app.catalog)))
    # What is there now stays. The collector need not look at it again, however many tools there are.
    gc.freeze()
    gc.set_threshold(_YOUNG)
    gc.enable()
    app.start()
    try:
        await asyncio.gather(*(serve_until_done(door, doors) for door in doors))
    finally:
        if link is not None:
            await link.stop_reporting()
        await app.close()
        if http_door is not None:
            http_door.close()
        if link is not None:
            link.close()
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
    from portbook.cli.serve_reload import (
        ReloadingStdio,
        command_of_this_process,  # late, both: only where files are watched
    )

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
        from portbook.cli.stop_and_reload_signals import reload_rules  # late: few servers are ever told to

        reload_rules(app, load, reload_certificate)

    on_signal(signal.SIGHUP, reload)


async def serve_until_done(door: Door, doors: list[Door]) -> None:
    """Serve one door. When it ends (its input ended, or its client is gone), stop all doors."""
    try:
        await door.serve()
    except ClientDoesNotRead:
        say("the client does not read its answers; giving up, the records have what its calls did")
    except BrokenPipeError:  # it is gone
        pass
    finally:
        for other in doors:
            other.stop()


def _warn(text: str) -> None:
    say(f"warning: {text}")


def _http_door(settings: Settings, inherited: Inherited | None, link: WorkerLink | None) -> HttpDoor:
    from portbook.cli.http_door import HttpDoor  # only where it is served: its routes and pages take time

    if link is not None:
        return HttpDoor(settings, link.place.listener, link.tally(), link)
    return HttpDoor(settings, None if inherited is None else inherited.listener)


def _link() -> WorkerLink | None:
    """Return the link to the process that supervises, if this one is a worker."""
    if "_PORTBOOK_WORKER" not in os.environ:
        return None
    from portbook.cli.worker_process import WorkerLink  # late: only in a worker

    link = WorkerLink.of_environment()
    if link is not None:
        link.start()
    return link


def _join(link: WorkerLink, app: App, servers: list[HttpServer]) -> None:
    """Serve together with the other workers."""
    from portbook.cli.stop_and_reload_signals import served_lists  # late: only in a worker

    # The supervisor replaces workers; one that reloaded alone would decide by rules of its own.
    on_signal(signal.SIGHUP, lambda: None)
    link.heed(partial(_obey, app, servers))
    link.report(partial(app.checks, deep=False))
    link.tell_ready(served_counts(app.catalog), served_lists(app.catalog), app.rules.policy.digest)


def _obey(app: App, servers: list[HttpServer], command: str) -> None:
    from portbook.cli.worker_process import Command

    if command == Command.STOP:
        app.approvals.stop_waiting()
        app.let_no_task_end()
        for server in servers:
            server.stop()
    else:
        leave(app, servers, lists_differ=command == Command.LEAVE_CHANGED)


def _supervise_workers(settings: Settings, *, with_stdio: bool, is_reloading: bool) -> None:
    """Supervise workers and exit, if the settings ask for more than one.

    Raises `BadSettings` where they cannot serve together, `OSError` where they cannot listen.
    """
    from portbook.cli.worker_count import usable_worker_count
    from portbook.cli.worker_supervisor import serve_with_workers  # late: most servers are one process

    count = usable_worker_count(settings, with_stdio=with_stdio, is_reloading=is_reloading)
    if count > 1:
        raise click.exceptions.Exit(serve_with_workers(settings, count))


def _serve_and_watch(given: Callable[..., Settings], config: Path | None) -> int:
    """Watch the files of a server in a child process; return its exit code."""
    from portbook.cli.http_door import bound  # late, here and below: only where files are watched
    from portbook.cli.serve_reload import ReloadingServer, command_of_this_process

    try:
        settings = given(config)
        if settings.socket is not None:
            raise settings.complain(
                ("server", "socket"), "cannot be reloaded; leave it out, or leave out --reload"
            )
        if settings.worker_processes != 1:
            from portbook.cli.worker_count import usable_worker_count

            usable_worker_count(settings, is_reloading=True)
        listener = bound(settings)
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    return ReloadingServer(listener, command_of_this_process()).run()


def _inherited() -> Inherited | None:
    """Return the socket of the process that watches, if one started this one."""
    if "_PORTBOOK_TAKE_OVER" not in os.environ:
        return None
    from portbook.cli.serve_reload import Inherited  # late: only where a process watches

    inherited = Inherited.of_environment()
    if inherited is not None:
        inherited.end_with_the_watcher()
    return inherited


def _is_trial() -> bool:
    """Return whether the process that serves only wants to know whether its changed files can be loaded."""
    if "_PORTBOOK_TRIAL" not in os.environ:
        return False
    from portbook.cli.reload_trial_and_watched_files import is_trial  # late: only after a change

    return is_trial()


def _tell_ready(inherited: Inherited | None, settings: Settings, app: App, servers: list[HttpServer]) -> None:
    if inherited is not None:
        from portbook.cli.reload_trial_and_watched_files import watched_files
        from portbook.cli.serve_reload import (
            Ready,
            leave_when_superseded,  # late, here and below: seldom needed
            tell_ready,
        )
        from portbook.cli.stop_and_reload_signals import served_lists

        leave_when_superseded(app, servers)
        at = None if settings.socket is None else str(settings.socket)
        address = {"server.host": settings.host, "server.port": settings.port, "server.socket": at}
        tell_ready(
            inherited.pipe, Ready(watched_files(settings), dict(served_lists(app.catalog)), {**address})
        )


def _run(main: Coroutine[Any, Any, None], *, with_http: bool) -> None:
    if with_http:
        import uvloop

        uvloop.run(main)
    else:
        asyncio.run(main)


def _no_sink() -> ClosableSink:
    from portbook.audit.memory_sink import NoSink  # late: only a trial leaves no records

    return NoSink()
