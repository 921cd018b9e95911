"""Which clients are running now: they read their configuration when they start."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from portbook.exports.client_table import KnownClient

__all__ = ["running_clients"]

_PROCESSES: Final = Path("/proc")
# Programs whose first argument is what runs.
_INTERPRETERS: Final = ("node", "bun", "deno", "python", "python3")


def running_clients(clients: Iterable[KnownClient]) -> list[KnownClient]:
    """Return those of some clients that have a process."""
    names = set(_names_from_files() if _PROCESSES.is_dir() else _names_from_ps())
    return [client for client in clients if names.intersection(client.processes)]


def _names_from_files() -> Iterator[str]:
    for folder in _PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            words = (folder / "cmdline").read_bytes().split(b"\0")
            yield from _names([word.decode("utf-8", "replace") for word in words[:2]])


def _names_from_ps() -> Iterator[str]:
    with contextlib.suppress(OSError):
        done = subprocess.run(
            ["/bin/ps", "-axo", "command="], capture_output=True, text=True, check=False, timeout=10
        )
        for line in done.stdout.splitlines():
            yield from _names(line.split()[:2])


def _names(words: list[str]) -> Iterator[str]:
    names = [word.rpartition("/")[2] for word in words]
    if names:
        yield names[0]
        if names[0] in _INTERPRETERS and len(names) > 1:
            yield names[1].removesuffix(".js")
