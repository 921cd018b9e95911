"""Where the schemas and examples of a library are. Light: a server asks this even if it has no library."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["find_folders"]

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
