"""`DeclaredSandbox`: how a server is confined, as the settings declare it. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from portbook.apis.table_reader import Table
from portbook.model import JSONObject

__all__ = ["DeclaredSandbox", "read_sandbox"]

_KEYS: Final = ("read", "write", "connect", "memory_mb", "processes")
_ANY_PORT: Final = "any"
_MAX_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class DeclaredSandbox:
    """What a server may do; all else is refused by the kernel."""

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    connect: tuple[int, ...] | None = ()
    """The TCP ports that it may connect to; None for any."""
    memory_mb: int | None = None
    """The data that each of its processes may hold."""
    processes: int | None = None
    """How many processes and threads it may have at once."""

    def as_data(self) -> JSONObject:
        """Return the sandbox as JSON, as the settings would have it."""
        return {
            "read": list(map(str, self.read)),
            "write": list(map(str, self.write)),
            "connect": _ANY_PORT if self.connect is None else list(self.connect),
            "memory_mb": self.memory_mb,
            "processes": self.processes,
        }


def read_sandbox(table: Table, folder: Path) -> DeclaredSandbox:
    """Return the sandbox that `table` declares; relative paths start in `folder`.

    Raises the exception of the table for the first mistake.
    """
    table.only(_KEYS)
    return DeclaredSandbox(
        read=_paths(table, "read", folder),
        write=_paths(table, "write", folder),
        connect=_ports(table),
        memory_mb=table.whole("memory_mb", 16, 1_048_576),
        processes=table.whole("processes", 1, 100_000),
    )


def _paths(table: Table, key: str, folder: Path) -> tuple[Path, ...]:
    return tuple(folder / Path(path).expanduser() for path in table.texts(key) or ())


def _ports(table: Table) -> tuple[int, ...] | None:
    if "connect" not in table:
        return ()
    given = table.value("connect")
    if given == _ANY_PORT:
        return None
    ports = cast("list[Any]", given) if isinstance(given, list) else None
    if ports is None or not all(type(port) is int and 0 < port <= _MAX_PORT for port in ports):
        raise table.wrong("connect", 'must be a list of ports such as [443], or "any"')
    return tuple(ports)
