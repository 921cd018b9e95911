"""`portbook doctor`: what this installation can do, on one screen to paste into a report."""

from __future__ import annotations

import importlib.util
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import click

from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, print_data, problems_of
from portbook.escaping import escaped
from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.sandbox.confined_command import problem_of_system
from portbook.settings import BadSettings, Settings
from portbook.version import __version__

__all__ = ["command"]

_PACKAGES: Final = ("pydantic", "jsonschema-rs", "orjson", "apsw", "pynacl", "uvloop")
# An extra, and the module that it brings.
_EXTRAS: Final = {"yaml": "yaml12", "postgres": "psycopg"}


@click.command("doctor")
@json_option()
@config_option
def command(*, is_json: bool, config: Path | None) -> None:
    """Show versions, extras, files and port of this installation; no secrets, and no values of settings.

    The exit code is 0, or 2 where the settings cannot be used.
    """
    out = claim_stdout()
    found = _found(config)
    width = max(map(len, found))
    words = [f"{name.ljust(width)}  {escaped(_shown(value), 400)}" for name, value in found.items()]
    print_data(found, words, out, is_json=is_json, is_ascii=True)
    if isinstance(found["settings"], list):
        raise click.exceptions.Exit(ExitCode.INVALID)


def _found(config: Path | None) -> dict[str, Any]:
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    found: dict[str, Any] = {
        "portbook": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": system,
        "packages": {name: _version(name) for name in _PACKAGES},
        "extras": {name: _has(module) for name, module in _EXTRAS.items()},
        "mcp": [str(revision) for revision in REVISIONS],
        "sandbox": problem_of_system() or "MCP servers can be confined",
    }
    try:
        settings = settings_from(config)
    except BadSettings as error:
        return {**found, "settings": problems_of(error)}  # a list: what is wrong with them
    return {**found, **_about(settings)}


def _about(settings: Settings) -> dict[str, Any]:
    return {
        "settings": "none" if settings.config is None else str(settings.config),
        "records": _folder(settings.log_dir),
        "store": _store(settings),
        "port": _port(settings),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _has(module: str) -> str:
    is_there = importlib.util.find_spec(module) is not None
    return "installed" if is_there else "missing"


def _folder(folder: Path) -> str:
    from portbook.app.start_warnings import blocked_by  # late, as below: only here

    return f"{folder}: {'can be written' if blocked_by(folder) is None else 'cannot be written'}"


def _store(settings: Settings) -> str:
    from portbook.app.start_warnings import problem_of_store  # late, both: only here
    from portbook.app.store_from_settings import store_of

    try:
        store = store_of(settings)
    except BadSettings as error:
        return str(error)
    try:
        can_be_used = f"{store.place}: can be used" if store.path is None else _folder(store.path.parent)
        return problem_of_store(store) or can_be_used
    finally:
        store.close()


def _port(settings: Settings) -> str:
    from portbook.doors.http.server.listeners_of_workers import bind  # late: only here

    address = f"{settings.host}:{settings.port}"
    try:
        bind(settings.host, settings.port).close()
    except OSError as error:
        return f"{address}: {error.strerror or error}"
    return f"{address}: free"


def _shown(value: str | list[str] | dict[str, str]) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    return value if isinstance(value, str) else ", ".join(value)
