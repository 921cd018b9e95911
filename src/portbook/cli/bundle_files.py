"""The files that a desktop bundle carries: whatever a server is made from, and nothing that is secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from portbook.cli.watched_files import watched_files
from portbook.settings import BadSettings, Settings

__all__ = ["bundle_files"]

_SKIPPED: Final = frozenset({"__pycache__", "node_modules"})


def bundle_files(settings: Settings, more: Sequence[Path]) -> dict[str, Path]:
    """Return each file by its path below the folder of the settings; the toolsets have been loaded.

    `more` are files and folders that the toolsets read, which nothing here can know.

    Raises `BadSettings` for a file outside of that folder.
    """
    root = settings.folder.resolve()
    files = [*watched_files(settings), *(root / "portbook.lock" for _ in settings.mcp_tables)]
    folders = (settings.schema_root, settings.asset_schemas, settings.asset_examples, settings.docs_folder)
    for place in (*(folder for folder in folders if folder is not None), *more):
        if not place.exists():
            raise BadSettings(f"{place}: there is no such file or folder")
        files += _files_in(place)
    return {_below(root, path.resolve()): path for path in files if path.is_file()}


def _files_in(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for path in sorted(place.iterdir()):
        if not path.name.startswith(".") and path.name not in _SKIPPED:
            yield from _files_in(path)


def _below(root: Path, path: Path) -> str:
    if not path.is_relative_to(root):
        raise BadSettings(f"{path}: is outside of {root}, whose files a bundle carries; move it there")
    return path.relative_to(root).as_posix()
