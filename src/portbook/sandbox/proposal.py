"""`propose`: the sandbox that a server needs, from what it touched in a trial."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portbook.sandbox.always_readable_files import ALWAYS_WRITABLE, always_readable
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
# Where the C library asks for users and hosts first, and does without an answer.
_OF_THE_SYSTEM: Final = ("/run/nscd/", "/var/run/nscd/", "/run/systemd/", "/var/run/systemd/")
_MEBIBYTE: Final = 1024 * 1024
_STEP_MB: Final = 64


@dataclass(frozen=True, slots=True)
class Touched:
    """What a server touched."""

    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    connect: frozenset[int] = frozenset()
    sockets: frozenset[str] = frozenset()
    """Unix sockets that it connected to."""
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
        sockets=frozenset(map(str, found.get("socket", ()))),
        memory_bytes=max(map(int, found.get("memory_bytes", (0,)))),
        processes=max(map(int, found.get("processes", (0,)))),
    )


def propose(
    touched: Touched,
    command: Sequence[str],
    environ: Mapping[str, str],
    folder: Path,
    variables: Iterable[str] = (),
) -> DeclaredSandbox:
    """Return the narrowest sandbox in which what was `touched` can be touched again.

    What the command or one of its own `variables` names is granted as well: it is what the server is for.
    """
    home = Path.home()
    free = tuple(map(Path, always_readable(command, environ, folder)))
    arguments = [each.partition("=")[2] if each.startswith("-") else each for each in command[1:]]
    data = [
        path
        for words, is_variable in ((arguments, False), (variables, True))
        for word in words
        if (path := _named_data(word, folder, home, is_variable=is_variable)) is not None
    ]
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
    # Each by its own name: that is what grants it.
    sockets = [Path(path) for path in sorted(touched.sockets) if not path.startswith(_OF_THE_SYSTEM)]
    memory_mb = -(-touched.memory_bytes * _ROOM // (_MEBIBYTE * _STEP_MB)) * _STEP_MB
    return DeclaredSandbox(
        read=_outermost([*read, *data], free),
        write=(*_outermost([*write, *data], ()), *sockets),
        connect=tuple(sorted(touched.connect)),
        memory_mb=max(memory_mb, _LEAST_MEMORY_MB),
        processes=max(touched.processes * _ROOM, _LEAST_PROCESSES),
    )


def sandbox_line(sandbox: DeclaredSandbox, folder: Path) -> str:
    """Return a sandbox as a line of the settings that lie in `folder`, with paths as people write them."""
    paths = {"read": sandbox.read, "write": sandbox.write}
    shown = {name: [_shown(path, folder) for path in found] for name, found in paths.items()}
    members = {**sandbox.as_data(), **shown}
    inner = ", ".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}"
        for name, value in members.items()
        if value is not None
    )
    return f"sandbox = {{ {inner} }}"


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


def _named_data(word: str, folder: Path, home: Path, *, is_variable: bool) -> Path | None:
    """Return what to grant for a path that a server is given; None where it is none, or would be too much.

    A file that is there already is only granted to a variable: one in a command is most likely a script. It
    is granted with its folder, because most programs replace a file by a new one beside it; but not where
    people keep keys (`~/.ssh`, `~/.config/…`).
    """
    path = folder / word
    try:
        if os.sep not in word or (path.is_file() and not is_variable):
            return None
        if path.is_dir():
            return None if is_variable and _is_wide(path, home) else path
        if path.exists():
            return path if _is_wide(path.parent, home) or _is_hidden(path.parent, home) else path.parent
        is_new = word.startswith((os.sep, ".")) and path.parent.is_dir()
    except (OSError, ValueError):
        return None
    return path.parent if is_new and not _is_wide(path.parent, home) else None


def _folder_of(path: Path, home: Path) -> Path:
    """Return what to grant so that `path` can be made, changed and removed again.

    Files with another name each time need their folder, however wide it is: of a person's home, only what
    is there already is granted.
    """
    parent = path.parent
    return path if _is_wide(parent, home) and path.exists() else parent


def _is_wide(folder: Path, home: Path) -> bool:
    return str(folder) in _WIDE or folder == home or folder in home.parents


def _is_hidden(folder: Path, home: Path) -> bool:
    return folder.is_relative_to(home) and any(
        part.startswith(".") for part in folder.relative_to(home).parts
    )


def _outermost(paths: Iterable[Path], free: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return `paths` without those below another one, or below one that needs no grant."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda each: (len(each.parts), each)):
        if not any(path.is_relative_to(outer) for outer in (*free, *kept)):
            kept.append(path)
    return tuple(sorted(kept))
