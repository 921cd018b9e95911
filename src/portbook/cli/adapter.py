"""`python -m mcp`: the asset specification's adapter, for scripts and configurations that use its name.

It serves the asset tools with or without a library, prints a line when it is ready, and writes records only
with --log-dir; a record that cannot be written refuses no call. Without a settings file it opens no store,
and its results follow the specification to the letter: nothing is redacted in them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from portbook.app.assemble import assemble, open_journal
from portbook.app.running_app import App
from portbook.app.tools_from_settings import asset_library
from portbook.assets.json_files import CannotRead, parsed, read_file
from portbook.assets.validate_asset import failed, validate_asset, without_reference
from portbook.audit.journal import Journal
from portbook.audit.memory_sink import NoSink
from portbook.canonical import json_bytes
from portbook.cli.exit_codes import ExitCode
from portbook.cli.main import run
from portbook.cli.options import START_ERRORS, config_option, log_dir_option, settings_from
from portbook.cli.output_and_errors import say, stop_with
from portbook.cli.ready_file import ReadyFile
from portbook.cli.serve import serve_until_done
from portbook.cli.stderr_queue import drain_output, occupy_standard_error, queued_output
from portbook.cli.stop_and_reload_signals import Door, stop_on_signals
from portbook.clock import SystemClock
from portbook.doors.ndjson import NdjsonDoor
from portbook.doors.sockets import ListeningDoor, UnixSocket, listen_tcp
from portbook.doors.stdio import Reader, Writer, claim_standard_streams
from portbook.errors import Finding
from portbook.model import Arrival, JSONObject
from portbook.settings import BadSettings, Settings
from portbook.stores.connection_clock_and_errors import MEMORY
from portbook.version import __version__

__all__ = ["command", "main"]

_READY_FILE: Final = "/tmp/mcp.ready"  # noqa: S108 - the specification's default; written whole, never through a link
_SOCKET_PATH: Final = "/tmp/mcp.sock"  # noqa: S108 - the adapter's default; made for its owner alone
_HOST: Final = "127.0.0.1"
_PORT: Final = "7000"


@click.command("mcp", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mcp", message="%(prog)s %(version)s")
@click.option("--validate", "asset", metavar="PATH", help="Validate one asset, print the result and exit.")
@log_dir_option("Folder for records.  [default: no records]")
@config_option
def command(*, asset: str | None, log_dir: Path | None, config: Path | None) -> None:
    """Serve the asset tools over STDIO, or validate one asset.

    MCP_ENDPOINT selects a different transport: socket (at MCP_SOCKET_PATH) or tcp (at MCP_HOST and MCP_PORT).
    With --validate the exit code is 0 for a valid asset, 1 for an invalid one, and 2 for a file that cannot
    be read.
    """
    occupy_standard_error()
    try:
        settings = _settings(config, log_dir)
        if asset is not None:
            raise click.exceptions.Exit(_validate(settings, Path(asset)))
        opening = _DOORS[_endpoint(os.environ)](os.environ)
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    with queued_output():
        try:
            app = _assemble(settings, opening, keeps_records=log_dir is not None)
        except (*START_ERRORS, OSError) as error:
            raise stop_with(error) from None
        for warning in app.warnings:
            _warn(warning)
        asyncio.run(_serve(app, opening))


def main() -> None:
    """Run `python -m mcp`."""
    run(command, "mcp")


def _settings(config: Path | None, log_dir: Path | None) -> Settings:
    flags = {"assets.enabled": True, "docs.enabled": False, "audit.on_failure": "warn"}
    settings = settings_from(config, log_dir, flags=flags)
    if settings.config is not None:
        return settings
    store = settings.store_path if os.environ.get("PORTBOOK_STORE") else Path(MEMORY)
    return settings._replace(store_path=store, redaction_enabled=False)


# -- one asset


def _validate(settings: Settings, path: Path) -> ExitCode:
    """Print the result for one file; return the exit code."""
    library = asset_library(settings)
    assert library is not None
    for warning in library.warnings:
        _warn(warning)
    try:
        asset = parsed(read_file(path))
    except CannotRead as reason:
        return _print(failed((Finding("", str(reason), "file", ""),)), ExitCode.INVALID)
    schema = library.schema_for(asset, path.name)
    result = validate_asset(library, without_reference(asset), schema)
    return _print(result, ExitCode.SUCCESS if result["ok"] else ExitCode.FAILURE)


def _print(result: JSONObject, code: ExitCode) -> ExitCode:
    click.echo(json_bytes(result))
    return code


# -- the doors


@dataclass(frozen=True, slots=True)
class _Opening:
    """A door that is about to be opened."""

    mode: str
    """Its part of the ready line."""
    open: Callable[[App], Door]
    close: Callable[[], None] = lambda: None
    is_exposed: bool = False
    """Whether a client on a different machine can reach it."""


def _endpoint(environ: Mapping[str, str]) -> str:
    named = environ.get("MCP_ENDPOINT", "").strip().removesuffix("://") or "stdio"
    if named not in _DOORS:
        raise BadSettings(f"$MCP_ENDPOINT must be one of {', '.join(_DOORS)}")
    return named


def _stdio(environ: Mapping[str, str]) -> _Opening:
    streams = claim_standard_streams()
    arrival = Arrival("stdio", "stdio", os.environ.pop("PORTBOOK_KEY", None))
    return _Opening(
        "mode=stdio",
        lambda app: NdjsonDoor(app.boundary, Reader(streams.incoming), Writer(streams.outgoing), arrival),
    )


def _socket(environ: Mapping[str, str]) -> _Opening:
    path = Path(_value(environ, "MCP_SOCKET_PATH", _SOCKET_PATH))
    made = UnixSocket(path)
    return _Opening(f"mode=socket path={path}", _listening(made.listener, "socket"), made.remove)


def _tcp(environ: Mapping[str, str]) -> _Opening:
    host, port = _value(environ, "MCP_HOST", _HOST), _value(environ, "MCP_PORT", _PORT)
    if not port.isdecimal() or int(port) > 65535:
        raise BadSettings("$MCP_PORT must be a whole number from 0 to 65535")
    listener = listen_tcp(host, int(port))
    bound = listener.getsockname()
    return _Opening(
        f"mode=tcp host={bound[0]} port={bound[1]}",
        _listening(listener, "tcp"),
        listener.close,
        is_exposed=not ipaddress.ip_address(bound[0]).is_loopback,
    )


_DOORS: Final[dict[str, Callable[[Mapping[str, str]], _Opening]]] = {
    "stdio": _stdio,
    "socket": _socket,
    "tcp": _tcp,
}


def _value(environ: Mapping[str, str], name: str, default: str) -> str:
    return environ.get(name, "").strip() or default


def _listening(listener: Any, transport: str) -> Callable[[App], Door]:
    arrival = Arrival(transport, transport)

    def open_door(app: App) -> Door:
        return ListeningDoor(
            listener, lambda reader, writer: NdjsonDoor(app.boundary, reader, writer, arrival)
        )

    return open_door


# -- serving


def _assemble(settings: Settings, opening: _Opening, *, keeps_records: bool) -> App:
    try:
        _require_consent(settings, opening)
        sink = _records(settings) if keeps_records else NoSink()
        return assemble(settings, is_exposed=opening.is_exposed, sink=sink, warn=_warn)
    except BaseException:
        opening.close()
        raise


def _require_consent(settings: Settings, opening: _Opening) -> None:
    if opening.is_exposed and settings.keys_required is not False:
        raise BadSettings(
            "$MCP_HOST lets clients on different machines call, and this transport carries no key; "
            "use 127.0.0.1, or set keys.required = false in portbook.toml"
        )


def _records(settings: Settings) -> Journal | NoSink:
    try:
        return open_journal(settings, SystemClock(), is_server=True)
    except OSError as error:
        _warn(f"{settings.log_dir}: no records are written: {error.strerror}")
        return NoSink()


async def _serve(app: App, opening: _Opening) -> None:
    door = opening.open(app)
    named = os.environ.get("MCP_READY_FILE", _READY_FILE).strip()
    try:
        ready = ReadyFile(Path(named) if named else None, SystemClock().now(), _warn)
        # Before the file is written: a signal must not leave it behind.
        stop_on_signals([door], _signals(), ready.remove)
        with ready:
            click.echo(f"mcp:ready {opening.mode}", err=True)
            app.start()
            try:
                await serve_until_done(door, [door])
            finally:
                await app.close()
    finally:
        opening.close()
        click.echo(f"mcp:shutdown {opening.mode}", err=True)
    if app.executor.has_strays:
        # Every call is answered and recorded; the loop would wait for threads that do not end.
        drain_output()
        os._exit(ExitCode.SUCCESS)


def _signals() -> tuple[int, ...]:
    is_kept = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # as nohup asks for
    return (signal.SIGINT, signal.SIGTERM) if is_kept else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _warn(text: str) -> None:
    say(f"warning: {text}")


if __name__ == "__main__":
    main()
