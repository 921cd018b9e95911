"""`propose`: the sandbox that a server needs, from what it touched in a trial."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portbook.sandbox.always_readable import ALWAYS_WRITABLE, always_readable
from portbook.sandbox.declared_sandbox import DeclaredSandbox

__all__ = ["Touched", "propose", "read_notes", "sandbox_line"]

# Folders that hold far more than a server's own things: of these, only single files are proposed.
_WIDE: Final = (
    "/",
    "/etc",
    "/var",
    "/usr",
    "/opt",
    "/srv",
    "/mnt",
    "/media",
    "/run",
    "/dev",
    "/proc",
    "/sys",
)
# What packages are installed into: with one file of it, all of it is needed.
_PACKAGES: Final = ("node_modules", "site-packages", "dist-packages", "_npx", "_cacache")
# Of these, a program sees its own processes alone, or figures about the machine: it does without.
_ABOUT_PROCESSES: Final = ("/proc/", "/sys/")
# A trial is short, and a call needs more than a start.
_ROOM: Final = 3
_LEAST_MEMORY_MB: Final = 256
_LEAST_PROCESSES: Final = 32
_MEBIBYTE: Final = 1024 * 1024
_STEP_MB: Final = 64


@dataclass(frozen=True, slots=True)
class Touched:
    """What a server touched."""

    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    connect: frozenset[int] = frozenset()
    memory_bytes: int = 0
    processes: int = 0


def read_notes(notes: str) -> Touched:
    """Return what the lines of `observe.py` say."""
    found: dict[str, list[str | int]] = {}
    for line in notes.splitlines():
        kind, what = json.loads(line)
        found.setdefault(kind, []).append(what)
    return Touched(
        read=frozenset(map(str, found.get("read", ()))),
        write=frozenset(map(str, found.get("write", ()))),
        connect=frozenset(map(int, found.get("connect", ()))),
        memory_bytes=max(map(int, found.get("memory_bytes", (0,)))),
        processes=max(map(int, found.get("processes", (0,)))),
    )


def propose(
    touched: Touched, command: Sequence[str], environ: Mapping[str, str], folder: Path
) -> DeclaredSandbox:
    """Return the narrowest sandbox in which what was `touched` can be touched again.

    A folder that the command names is granted as well: it is what the server is for.
    """
    home = Path.home()
    free = tuple(map(Path, always_readable(command, environ, folder)))
    data = [path for path in (folder / each for each in command[1:] if os.sep in each) if path.is_dir()]
    read = [
        _whole(path, home)
        for path in map(Path, touched.read)
        if not str(path).startswith(_ABOUT_PROCESSES) and not any(map(path.is_relative_to, free))
    ]
    write = [
        _folder_of(Path(path), home)
        for path in touched.write
        if path not in ALWAYS_WRITABLE and not path.startswith(_ABOUT_PROCESSES)
    ]
    memory_mb = -(-touched.memory_bytes * _ROOM // (_MEBIBYTE * _STEP_MB)) * _STEP_MB
    return DeclaredSandbox(
        read=_outermost([*read, *data], free),
        write=_outermost([*write, *data], ()),
        connect=tuple(sorted(touched.connect)),
        memory_mb=max(memory_mb, _LEAST_MEMORY_MB),
        processes=max(touched.processes * _ROOM, _LEAST_PROCESSES),
    )


def sandbox_line(sandbox: DeclaredSandbox, folder: Path) -> str:
    """Return a sandbox as a line of the settings that lie in `folder`."""
    members = {
        "read": _listed(sandbox.read, folder),
        "write": _listed(sandbox.write, folder),
        "connect": '"any"' if sandbox.connect is None else json.dumps(list(sandbox.connect)),
        "memory_mb": sandbox.memory_mb,
        "processes": sandbox.processes,
    }
    inner = ", ".join(f"{name} = {value}" for name, value in members.items() if value is not None)
    return f"sandbox = {{ {inner} }}"


def _listed(paths: Iterable[Path], folder: Path) -> str:
    return json.dumps([_shown(path, folder) for path in paths], ensure_ascii=False)


def _shown(path: Path, folder: Path) -> str:
    for start, sign in ((folder, "."), (Path.home(), "~")):
        if path.is_relative_to(start) and start != Path("/"):
            return str(Path(sign, path.relative_to(start)))
    return str(path)


def _whole(path: Path, home: Path) -> Path:
    """Return what to grant so that `path` can be read: its folder, or what it was installed with."""
    for at, part in enumerate(path.parts):
        if part in _PACKAGES:
            return Path(*path.parts[: at + 1])
    parent = path if path.is_dir() else path.parent
    return path if _is_wide(parent, home) else parent


def _folder_of(path: Path, home: Path) -> Path:
    """Return what to grant so that `path` can be made, changed and removed again.

    Files with another name each time need their folder, however wide it is: of a person's home, only what
    is there already is granted.
    """
    parent = path.parent
    return path if _is_wide(parent, home) and path.exists() else parent


def _is_wide(folder: Path, home: Path) -> bool:
    return str(folder) in _WIDE or folder == home or folder in home.parents


def _outermost(paths: Iterable[Path], free: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return `paths` without those below another one, or below one that needs no grant."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda each: (len(each.parts), each)):
        if not any(path.is_relative_to(outer) for outer in (*free, *kept)):
            kept.append(path)
    return tuple(sorted(kept))
