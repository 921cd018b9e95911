"""The folders of schemas and examples, and how they are listed. Light: asked even if there is no library."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Final

__all__ = ["find_folders", "listed_folder", "spelled_folder"]

# The asset specification's schemas and examples, in a checkout that has them as a submodule.
_SUBMODULE: Final = Path("libs/synesthetic-schemas")


def find_folders(schemas: Path | None, examples: Path | None) -> tuple[Path | None, Path | None]:
    """Return the folders of a library: the given ones, otherwise those of the submodule, if they exist."""
    return (
        schemas or _if_exists(_SUBMODULE / "jsonschema"),
        examples or _if_exists(_SUBMODULE / "examples"),
    )


def _if_exists(folder: Path) -> Path | None:
    return folder if folder.is_dir() else None


def listed_folder(folder: Path, home: Path) -> PurePosixPath:
    """Return a folder as listings and messages have it, however it was configured.

    1. Below `home`: relative to it.
    2. Below `home` once links are followed: the same.
    3. Anywhere else: absolute.
    """
    place = Path(os.path.abspath(folder))  # noqa: PTH100 - without following links, and without `..`
    for found, start in ((place, home.absolute()), (folder.resolve(), home.resolve())):
        if found.is_relative_to(start):
            return PurePosixPath(found.relative_to(start).as_posix())
    return PurePosixPath(place.as_posix())


def spelled_folder(folder: Path, home: Path) -> list[str]:
    """Return every way in which an operator may have written a folder, each to be followed by a file's path.

    Settings keep the folder alone, and not how it was written: a flag and a variable start in the current
    folder, the settings file in `home`, and both allow `./`.
    """
    place = os.path.abspath(folder)  # noqa: PTH100 - without following links, and without `..`
    written = [folder.as_posix(), place, *(os.path.relpath(place, start) for start in (home, Path()))]
    if folder.is_relative_to(home):
        written.append(folder.relative_to(home).as_posix())
    plain = ["" if each == "." else f"{each}/" for each in dict.fromkeys(written)]
    return [*plain, *(f"./{each}" for each in plain if not each.startswith("/"))]
