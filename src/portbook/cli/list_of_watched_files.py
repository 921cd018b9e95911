"""The files that `serve --reload` watches: settings, toolsets with what they import, documents."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from portbook.settings import Settings
from portbook.tools.toolset_loader import modules_below

__all__ = [
    "POLL_S",
    "Stamps",
    "after_failure",
    "python_folders",
    "stamps_of",
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
