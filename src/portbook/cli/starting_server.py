"""A server in a process of its own, from its start until it says that it is ready."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from portbook.cli.inherited_socket import TAKE_OVER
from portbook.model import Kind

__all__ = ["Ready", "StartingServer", "tell_ready"]

_CHUNK: Final = 65_536  # what a pipe holds


class Ready(NamedTuple):
    """What a server tells once it serves: the files that it is made from, what it lists, its address."""

    files: list[Path]
    lists: dict[Kind, str]
    address: dict[str, str | int | None]
    """The settings that say where to listen, and their values."""


def tell_ready(descriptor: int, ready: Ready) -> None:
    """Tell the process that watches that this one serves."""
    with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
        json.dump({**ready._asdict(), "files": [str(path) for path in ready.files]}, pipe)


class StartingServer:
    """Waits for a new process without being held up by it: an import may take long, or never end."""

    def __init__(self, command: Sequence[str], listener: int, lifeline: int) -> None:
        """Start `command`; it inherits the socket that listens, and a pipe that ends with this process."""
        self.started = time.time_ns()
        self._told = b""
        self._pipe, theirs = os.pipe()
        descriptors = (listener, theirs, lifeline)
        self.process = subprocess.Popen(  # noqa: S603 - the command of this process itself
            command,
            pass_fds=descriptors,
            # Ctrl-C reaches the whole group of a terminal, and this process passes it on: once is enough.
            process_group=0,
            # Bytecode is as old as a second: of two quick changes, it could be that of the first.
            env={
                **os.environ,
                "PYTHONDONTWRITEBYTECODE": "1",
                TAKE_OVER: ",".join(map(str, descriptors)),
            },
        )
        os.close(theirs)

    def has_told(self, seconds: float) -> bool:
        """Wait so long; return whether it has said everything, or has ended before it could."""
        readable, _, _ = select.select([self._pipe], [], [], seconds)
        if not readable:
            return False
        self._told += (data := os.read(self._pipe, _CHUNK))
        return not data

    def settle(self) -> Ready | None:
        """Return what it told; None if it has ended without a word. Once `has_told`."""
        os.close(self._pipe)
        if not self._told:
            self.process.wait()
            return None
        told = json.loads(self._told)
        return Ready(**told | {"files": [Path(name) for name in told["files"]]})

    def give_up(self) -> None:
        """End it: nobody waits for it any more."""
        os.close(self._pipe)
        # Not killed: if it has just become ready, it has connections, and ends them first.
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
