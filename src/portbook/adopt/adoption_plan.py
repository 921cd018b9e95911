"""Which files an adoption changes, and how: worked out whole before the first one is touched."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portbook.adopt.adoption_journal import OurEntry
from portbook.adopt.client_document import Entry, NotReadable, decoded, edited, parsed
from portbook.adopt.file_change import FileChange, backup_path
from portbook.adopt.servers_and_aliases import (
    AdoptedServer,
    FoundServer,
    ServerPlace,
    found_servers,
    is_ours,
    places_of,
)
from portbook.exports.client_table import EntryStyle
from portbook.model import JSON, JSONObject

__all__ = ["ClientFile", "PlannedChange", "planned_clients", "read_client_file"]

_ENTRY: Final = "portbook"
_OTHER_ENTRY: Final = "portbook-adopted"
_SERVER: Final = "--server"

PlannedChange = tuple[FileChange, tuple[OurEntry, ...]]


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A client's file as it was read."""

    path: Path
    """Where links lead."""
    data: bytes
    servers: tuple[FoundServer, ...]

    @property
    def is_read_only(self) -> bool:
        """Return whether its owner has taken everybody's permission to write it."""
        return not stat.S_IMODE(self.path.stat().st_mode) & 0o222

    @property
    def is_replaceable(self) -> bool:
        """Return whether a new file can take its place: the folder of one on a read-only disk takes none."""
        return os.access(self.path.parent, os.W_OK | os.X_OK)


def read_client_file(place: ServerPlace) -> ClientFile | None:
    """Return a client's file with its servers, or None where there is none.

    Raises `NotReadable` and `OSError` where it cannot be read.
    """
    try:
        path = place.file.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except RuntimeError:  # what Python before 3.13 makes of links that lead in a circle
        raise NotReadable("its links lead in a circle") from None
    if not path.is_file():
        return None
    data = path.read_bytes()
    whole = parsed(decoded(data), place.client.form)
    servers = [
        server for each in places_of(place.client, path, whole) for server in found_servers(each, whole)
    ]
    return ClientFile(path, data, tuple(servers))


def planned_clients(
    files: Iterable[ClientFile],
    adopted: Sequence[AdoptedServer],
    command: Sequence[str],
    settings: Path,
    time: str,
) -> list[PlannedChange]:
    """Return the changes of clients' files: one entry of ours in place of those that are adopted.

    `command` starts Portbook, `time` makes the names of backups.

    Raises `NotReadable` for a file that cannot be edited.
    """
    of: dict[int, AdoptedServer] = {id(found): server for server in adopted for found in server.found}
    changes: list[PlannedChange] = []
    for file in files:
        by_place: dict[ServerPlace, list[FoundServer]] = defaultdict(list)
        for found in file.servers:
            if id(found) in of:
                by_place[found.place].append(found)
        if not by_place:
            continue
        text, entries = decoded(file.data), list[OurEntry]()
        for place, servers in by_place.items():
            entry, remove = _entry(file, place, {each: of[id(each)] for each in servers}, command, settings)
            try:
                text = edited(text, place.client.form, place.path, remove, entry)
            except NotReadable as error:
                raise NotReadable(f"{file.path}: {error}") from None
            entries.append(OurEntry(place.client.form, place.path, entry.name, tuple(remove)))
        backup = backup_path(file.path, time)
        change = FileChange(file.path, file.data, text.encode(), 0o600, backup)
        changes.append((change, tuple(entries)))
    return changes


def _entry(
    file: ClientFile,
    place: ServerPlace,
    adopted: Mapping[FoundServer, AdoptedServer],
    command: Sequence[str],
    settings: Path,
) -> tuple[Entry, list[str]]:
    """Return our entry for a place, and the names of those that it replaces: an older one of ours, too."""
    here = [each for each in file.servers if each.place == place]
    ours = next((each for each in here if is_ours(each, settings)), None)
    aliases: list[str] = []
    env: dict[str, str] = {}
    if ours is not None:
        words = zip(ours.command, ours.command[1:], strict=False)
        aliases += [alias for word, alias in words if word == _SERVER]
        env |= dict(ours.env)
    for found, server in adopted.items():
        aliases.append(server.alias)
        env |= server.values_of(found)
    is_taken = any(each.name == _ENTRY for each in here if each is not ours and each not in adopted)
    name = ours.name if ours is not None else _OTHER_ENTRY if is_taken else _ENTRY
    whole = [*command, "serve", "--stdio", "--config", str(settings)]
    for alias in dict.fromkeys(aliases):
        whole += [_SERVER, alias]
    value = _written(place.client.style, name, whole, env)
    return Entry(name, value), [each.name for each in adopted] + ([] if ours is None else [ours.name])


def _written(style: EntryStyle, name: str, command: list[str], env: dict[str, str]) -> JSONObject:
    value: JSONObject = {"name": name} if style.has_name else {}
    value |= style.local
    if style.args is None:
        value[style.command] = list[JSON](command)
    else:
        value |= {style.command: command[0], style.args: list[JSON](command[1:])}
    return {**value, style.env: dict[str, JSON](env)} if env else value
