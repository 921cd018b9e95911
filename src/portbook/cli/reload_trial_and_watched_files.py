"""What `serve --reload` watches, and the trial of changed files before they are served."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from portbook.cli.exit_codes import ExitCode
from portbook.cli.output_and_errors import say
from portbook.settings import Settings
from portbook.tools.toolset_loader import modules_below

__all__ = [
    "POLL_S",
    "TRIAL",
    "SlowReload",
    "Stamps",
    "after_failure",
    "ending_of",
    "is_trial",
    "load_failure",
    "python_folders",
    "stamps_of",
    "try_to_load",
    "watched_files",
    "without_changes_since",
]

# How often files are looked at: a person who saves one and turns to the client finds it in force.
POLL_S: Final = 0.25
# The time and the size of each file; None where it is not there.
Stamps = dict[Path, tuple[int, int] | None]


def watched_files(settings: Settings) -> list[Path]:
    """Return the files whose change makes a different server; the toolsets have been loaded."""
    config = [] if settings.config is None else [settings.config]
    return sorted({path.resolve() for path in (*config, *_python(settings), *_documents(settings))})


def stamps_of(files: list[Path]) -> Stamps:
    """Return what tells a changed file from an unchanged one."""
    found: Stamps = {}
    for path in files:
        try:
            status = path.stat()
        except OSError:
            found[path] = None
        else:
            found[path] = status.st_mtime_ns, status.st_size
    return found


def without_changes_since(started: int, stamps: Stamps) -> Stamps:
    """Return the stamps, of which those count as changed that a server may have read too early."""
    now = time.time_ns()
    return {
        path: None if stamp is not None and started <= stamp[0] <= now else stamp
        for path, stamp in stamps.items()
    }


def after_failure(stamps: Stamps) -> Stamps:
    """Return the stamps to wait with for the next change: the cause may be in a file that is new to us.

    A module that cannot be imported is known nowhere. It stands beside those that can, or one folder below.
    """
    folders = {path.parent for path in stamps if path.suffix == ".py"}
    beside = {found for folder in folders for glob in ("*.py", "*/*.py") for found in folder.glob(glob)}
    return {**stamps_of(sorted(beside - stamps.keys())), **stamps}


def _python(settings: Settings) -> Iterator[Path]:
    """Yield the toolsets, and the modules that were loaded from their folders."""
    yield from _named(settings)
    for _, _, path in modules_below(python_folders(settings)):
        yield path


def python_folders(settings: Settings) -> set[Path]:
    """Return the folders of the toolsets."""
    return {path.resolve().parent for path in _named(settings)}


def _named(settings: Settings) -> list[Path]:
    """Return the files of the toolsets; that of a module is known once it is loaded."""
    sources = (*settings.toolsets, *settings.more_toolsets)
    named = [Path(source) for source in sources if source.endswith(".py")]
    modules = [_file_of(sys.modules[source]) for source in sources if source in sys.modules]
    return [*named, *(path for path in modules if path is not None)]


def _file_of(module: Any) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name) if isinstance(name, str) else None


def _documents(settings: Settings) -> Iterator[Path]:
    for table in settings.http_tables.values():
        given = cast("Mapping[str, Any]", table).get("openapi", ())
        names = cast("list[Any]", [given] if isinstance(given, str) else given)
        yield from (settings.folder / name for name in names if isinstance(name, str) and "://" not in name)
    if settings.http_tables:
        yield settings.folder / "portbook.lock"


# A trial of changed files: another process loads them first, and an import that hangs holds up no client.


# Set for the process of a trial alone: it loads what it would serve, and ends.
TRIAL: Final = "_PORTBOOK_TRIAL"


def is_trial() -> bool:
    """Return whether this process only loads what it would serve; what it starts itself does not see it."""
    return os.environ.pop(TRIAL, None) is not None


async def try_to_load(command: Sequence[str]) -> str | None:
    """Run `command` as a trial; return what it says where it fails, and None where it succeeds.

    Whoever cancels this ends the process.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
        # A Ctrl-C of the terminal is for the process that serves, which then ends this one.
        process_group=0,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", TRIAL: "1"},
    )
    try:
        _, said = await process.communicate()
    except asyncio.CancelledError:
        await _end(process)
        raise
    code = await process.wait()
    if code == 0:
        return None
    failure = load_failure(code)
    return said.decode(errors="replace") + ("" if failure is None else f"portbook: {failure}\n")


async def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()  # it has no calls: there is nothing to finish
    await process.wait()


# How a process ended that was to load changed files, where it cannot have said so itself.


def load_failure(code: int) -> str | None:
    """Return what an exit code of `subprocess` tells; None where the process has said why it failed."""
    if code == int(ExitCode.INVALID):
        return None
    how = ending_of(code)
    return f"error: the process that loaded the changed files ended {how}; see what they do when imported"


def ending_of(code: int) -> str:
    """Return how a process ended, in words, from an exit code of `subprocess`."""
    return f"with exit code {code}" if code >= 0 else f"by signal {_name(-code)}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return str(number)


# Tells the operator that changed files take long to load, so that nobody waits in vain.

# After this, an author wonders why the change is not there.
_SLOW_S: Final = 3.0


class SlowReload:
    """The reload that has just begun."""

    def __init__(self) -> None:
        self._tell_at: float | None = time.monotonic() + _SLOW_S

    def tell_once(self) -> None:
        """Tell it if it is time."""
        if self._tell_at is not None and time.monotonic() >= self._tell_at:
            self._tell_at = None
            say("the changed files are still loading; what was served before stays in force until then")
