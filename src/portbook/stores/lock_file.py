"""`portbook.lock`, beside the settings file: what an operator fetched or approved, for version control.

One JSON object with a section for each kind of entry. This module reads and writes the file; each section is
read by the module that owns it. The text is the same for the same entries, and hidden characters in it are
escaped, so that a review shows every change.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from portbook.errors import Refused
from portbook.escaping import escaped_json
from portbook.model import JSON, JSONObject
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.wire.parsing import parse
from portbook.wire.source_positions import locate

__all__ = ["LOCK_NAME", "LockFile", "LockSection", "change_section", "write_atomically"]

# Writes a file as a whole: a reader sees the old one or the new one.


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the file at `path`, or create it.

    Raises `OSError` where it cannot be written.
    """
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(descriptor, 0o644)
            file.flush()
            os.fsync(descriptor)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


LOCK_NAME: Final = "portbook.lock"

# Every section, and the command that writes it.
_SECTIONS: Final = {"mcp": "portbook pin", "openapi": "portbook fetch"}

_POSITION: Final = re.compile(r" \(line (\d+), column \d+\)$")


@dataclass(frozen=True, slots=True)
class LockSection:
    """One section of a lock file; empty where the file has none."""

    name: str
    entries: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    _text: str = field(default="", repr=False, compare=False)

    def wrong(self, pointer: str, problem: str) -> BadLock:
        """Return the exception for what stands at `pointer`, which is relative to the section."""
        pointer = f"/{self.name}{pointer}"
        line = locate(self._text, [pointer])[pointer].line
        remedy = f"restore the file, or remove the section and run `{_SECTIONS[self.name]}` again"
        return _bad(line, f"{pointer}: {problem}; {remedy}")


@dataclass(frozen=True, slots=True)
class LockFile:
    """A lock file as it was read."""

    sections: Mapping[str, LockSection] = field(default_factory=dict[str, LockSection])

    @classmethod
    def read(cls, folder: Path) -> LockFile:
        """Return the lock of a folder; without a file, an empty one.

        Raises `BadLock` where the file cannot be read.
        """
        try:
            data = (folder / LOCK_NAME).read_bytes()
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise BadLock(f"{LOCK_NAME} cannot be read: {error.strerror}") from None
        found, text = _parsed(data), data.decode()
        if not isinstance(found, dict):
            raise _bad(1, "must be one JSON object; restore the file")
        for name in found:
            if name not in _SECTIONS:
                line = locate(text, [f"/{name}"], are_names=True)[f"/{name}"].line
                known = " and ".join(_SECTIONS)
                raise _bad(line, f"has a section that this version does not know; it knows {known}")
        return cls({name: _section(name, entries, text) for name, entries in found.items()})

    def section(self, name: str) -> LockSection:
        """Return one section."""
        return self.sections.get(name) or LockSection(name)


def change_section(folder: Path, name: str, change: Callable[[LockSection], JSONObject]) -> None:
    """Replace one section of a folder's lock by what `change` makes of it; the other sections stay.

    Two processes that do so at once take turns.

    Raises `BadLock` where the file cannot be read, `OSError` where it cannot be written.
    """
    with _turn(folder):
        lock = LockFile.read(folder)
        entries: dict[str, JSON] = {each.name: dict(each.entries) for each in lock.sections.values()}
        entries[name] = change(lock.section(name))
        text = json.dumps(dict(sorted(entries.items())), indent=2, ensure_ascii=False)
        write_atomically(folder / LOCK_NAME, escaped_json(text).encode() + b"\n")


@contextmanager
def _turn(folder: Path) -> Generator[None]:
    # The folder is locked, not the file: the file is replaced by each write.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _parsed(data: bytes) -> JSON:
    try:
        return parse(data)
    except Refused as refused:
        message = refused.findings[0].message
        place = _POSITION.search(message)
        line = int(place[1]) if place else 1
        raise _bad(line, f"not valid JSON: {_POSITION.sub('', message)}; restore the file") from None


def _section(name: str, entries: JSON, text: str) -> LockSection:
    if not isinstance(entries, dict):
        raise LockSection(name, {}, text).wrong("", "must be an object")
    return LockSection(name, entries, text)


def _bad(line: int, problem: str) -> BadLock:
    return BadLock(f"{LOCK_NAME}:{line}: {problem}")
