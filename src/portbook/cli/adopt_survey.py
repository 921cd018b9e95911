"""What `portbook adopt` finds: the servers of clients, what they offer, the settings they would have."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from portbook.adopt.adopted_server import AdoptedServer, adopted_servers, settings_text
from portbook.adopt.adoption_plan import ClientFile, read_client_file
from portbook.adopt.client_document import NotReadable
from portbook.adopt.client_table import CLIENTS, KnownClient, client_files
from portbook.adopt.file_change import FileChange, read_if_there, write_file
from portbook.adopt.found_server import FoundServer, ServerPlace, is_ours
from portbook.app.asked_servers import ask_servers, declared_servers
from portbook.cli.adopt_report import ServerRow
from portbook.cli.options import settings_from
from portbook.pins.grade import OnChange
from portbook.pins.pin_lock import PinLock, approve
from portbook.pins.server_definitions import ServerDefinitions
from portbook.pins.standing import PinVerdicts, judge, without_attacks
from portbook.settings import CONFIG_NAME, BadSettings
from portbook.stores.lock_file import LOCK_NAME
from portbook.text.late_pattern import late_pattern
from portbook.upstreams.definitions import Offer
from portbook.upstreams.mcp_table import read_mcp
from portbook.upstreams.pinned_trust import pinned_part

__all__ = ["Survey", "portbook_command", "survey_clients"]

_PRIVATE: Final = 0o600
_READABLE: Final = 0o644
# A variable that a client fills in from its own environment, with a default.
_VARIABLE: Final = late_pattern(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")
_LOGIN: Final = late_pattern(r"status 40[13]\b")


@dataclass(frozen=True, slots=True)
class Survey:
    """All that is known before a file is changed."""

    folder: Path
    files: tuple[ClientFile, ...]
    rows: tuple[ServerRow, ...]
    adopted: list[AdoptedServer]
    own_files: tuple[FileChange, ...]
    """The settings, the lock and the secrets, as they are to be."""
    problems: list[str] = field(default_factory=list[str])
    """Files that could not be read."""

    @property
    def settings(self) -> Path:
        """Return the path of the settings."""
        return self.folder / CONFIG_NAME

    def secrets(self) -> set[str]:
        """Return every value of a variable or a header."""
        return {value for row in self.rows for _, value in (*row.found.env, *row.found.headers)}

    def withheld(self) -> dict[str, int]:
        """Return how many tools of each server the scan keeps from being approved."""
        counts = {
            row.server.alias: sum(each.is_quarantined for each in row.verdicts.values())
            for row in self.rows
            if row.server is not None
        }
        return {alias: count for alias, count in counts.items() if count}


def survey_clients(
    folder: Path, clients: tuple[str, ...], files: tuple[Path, ...], names: tuple[str, ...]
) -> Survey:
    """Return what is there, and what adopting it would make of it. Servers are started, and ended.

    Raises `BadSettings` for settings in `folder` that cannot be used.
    """
    problems: list[str] = []
    read = list(_read_files(clients, files, problems))
    settings = folder / CONFIG_NAME
    found = [each for file in read for each in file.servers if not is_ours(each, settings)]
    why = {id(each): _why_left(file, each, names) for file in read for each in file.servers}
    tables = _tables(settings)
    for server in adopted_servers([each for each in found if why[id(each)] is None], tables):
        if problem := _unusable(server, folder):
            why |= {id(each): problem for each in server.found}
    asked = _Asked(folder, adopted_servers([each for each in found if why[id(each)] is None], tables))
    rows: list[ServerRow] = []
    for each in found:
        server = next((one for one in asked.servers if any(each is entry for entry in one.found)), None)
        answer = None if server is None else asked.offers[server.alias]
        left = why[id(each)] or (answer if isinstance(answer, str) else None)
        offered = answer if isinstance(answer, ServerDefinitions) else None
        verdicts: PinVerdicts = {} if server is None else asked.verdicts(server.alias)
        rows.append(ServerRow(each, server if left is None else None, offered, verdicts, left))
    adopted = [one for one in asked.servers if isinstance(asked.offers[one.alias], ServerDefinitions)]
    own = asked.files(adopted) if adopted else ()
    return Survey(folder, tuple(read), tuple(rows), adopted, own, problems)


def portbook_command() -> list[str]:
    """Return the command that starts this Portbook from anywhere."""
    prefix = Path(sys.prefix)
    if "archive-v0" in prefix.parts or "environments-v2" in prefix.parts:  # made by uvx, gone at any time
        return [shutil.which("uvx") or "uvx", "portbook"]
    script = prefix / "bin" / "portbook"
    return [str(script)] if script.is_file() else [sys.executable, "-m", "portbook"]


def _tables(settings: Path) -> dict[str, Any]:
    data = read_if_there(settings)
    if data is None:
        return {}
    settings_from(settings)  # what is wrong with them is told as everywhere
    return tomllib.loads(data.decode()).get("mcp", {})


def _unusable(server: AdoptedServer, folder: Path) -> str | None:
    """Return why settings cannot have a server, or None."""

    def complain(path: tuple[str | int, ...], sentence: str) -> BadSettings:
        return BadSettings(f"Portbook cannot take it over: {path[-1]} {sentence}")

    try:
        read_mcp({server.alias: server.table()}, folder, complain)
    except BadSettings as error:
        return str(error)
    return None


# -- files of clients


def _read_files(
    clients: tuple[str, ...], files: tuple[Path, ...], problems: list[str]
) -> Iterator[ClientFile]:
    seen: set[Path] = set()
    for place in _places(clients, files):
        try:
            file = read_client_file(place)
        except NotReadable as error:
            problems.append(f"{place.file} is left alone: {error}")
        except OSError as error:
            problems.append(f"{place.file} is left alone: {error.strerror}")
        else:
            if file is not None and file.path not in seen:
                seen.add(file.path)
                yield file


def _places(clients: tuple[str, ...], files: tuple[Path, ...]) -> Iterator[ServerPlace]:
    chosen = [client for client in CLIENTS if not clients or client.name in clients]
    for file in files:
        yield ServerPlace(client := _client_of(file, chosen), file, client.path)
    for client in () if files else chosen:
        for file in client_files(client, Path.home(), is_mac=sys.platform == "darwin"):
            yield ServerPlace(client, file, client.path)


def _client_of(file: Path, chosen: list[KnownClient]) -> KnownClient:
    """Return the client that a file belongs to, by its name; of a single chosen one, any file."""
    if len(chosen) == 1:
        return chosen[0]
    known = [(name, client) for client in chosen for name in (*client.project_files, *client.files)]
    path = file.absolute().as_posix()
    for name, client in known:
        if path.endswith("/" + name.removeprefix("{config}/")):
            return client
    raise click.UsageError(f"--file: {file.name} is not a file of a known client; say which with --client")


def _why_left(file: ClientFile, server: FoundServer, names: tuple[str, ...]) -> str | None:
    if names and server.name not in names:
        return "it was not chosen"
    if file.is_read_only:
        return "its file is read-only"
    return server.left


# -- what servers offer


class _Asked:
    """Servers with what they offer today."""

    def __init__(self, folder: Path, servers: list[AdoptedServer]) -> None:
        """Ask all servers side by side, under the settings that they would have."""
        self._folder = folder
        self._settings = read_if_there(folder / CONFIG_NAME)
        self._lock = read_if_there(folder / LOCK_NAME)
        self.servers = servers
        self.offers: dict[str, ServerDefinitions | str] = {}
        if servers:
            self._ask()

    def _ask(self) -> None:
        with tempfile.TemporaryDirectory(prefix="portbook-adopt-") as name:
            draft = Path(name)
            for change in self._drafts(self.servers):
                write_file(draft / change.path.relative_to(self._folder), change.after, _PRIVATE)
            settings = settings_from(draft / CONFIG_NAME)
            wanted = {server.alias for server in self.servers}
            declared = {each.alias: each for each in declared_servers(settings) if each.alias in wanted}
            answers = asyncio.run(ask_servers(settings, declared.values(), self._environ()))
        for alias, answer in answers.items():
            self.offers[alias] = (
                pinned_part(declared[alias], answer) if isinstance(answer, Offer) else _why_not(answer)
            )

    def _environ(self) -> dict[str, str]:
        environ = dict(os.environ)
        for server in self.servers:
            for name, value in server.values_of(server.found[0]).items():
                environ[name] = _VARIABLE.sub(lambda found: os.environ.get(found[1], found[2] or ""), value)
        return environ

    def verdicts(self, alias: str) -> PinVerdicts:
        """Return how the definitions of a server stand before they are approved."""
        observed = self.offers[alias]
        if isinstance(observed, str):
            return {}
        others = {
            other: each.tools for other, each in self.offers.items() if isinstance(each, ServerDefinitions)
        }
        others.pop(alias)
        pinned = PinLock.read(self._folder).servers
        return judge(
            pinned.get(alias), observed, OnChange(), {other: [*each] for other, each in others.items()}
        )

    def files(self, adopted: list[AdoptedServer]) -> tuple[FileChange, ...]:
        """Return the settings, the secrets and the lock as they are to be, where they differ."""
        clean: Mapping[str, ServerDefinitions] = {
            server.alias: without_attacks(offered, self.verdicts(server.alias))
            for server in adopted
            if isinstance(offered := self.offers[server.alias], ServerDefinitions)
        }
        with tempfile.TemporaryDirectory(prefix="portbook-adopt-") as name:
            if self._lock is not None:
                write_file(Path(name) / LOCK_NAME, self._lock, _PRIVATE)
            approve(Path(name), clean)
            lock = (Path(name) / LOCK_NAME).read_bytes()
        changes = [*self._drafts(adopted), FileChange(self._folder / LOCK_NAME, self._lock, lock, _READABLE)]
        return tuple(change for change in changes if change.before != change.after)

    def _drafts(self, servers: list[AdoptedServer]) -> Iterator[FileChange]:
        for server in servers:
            for name, value in server.secrets.items():
                path = self._folder / name
                yield FileChange(path, read_if_there(path), value.encode(), _PRIVATE)
        before = self._settings
        known = tomllib.loads("" if before is None else before.decode()).get("mcp", {})
        text = settings_text(
            None if before is None else before.decode(), servers, known, str(self._folder / "runs")
        )
        yield FileChange(self._folder / CONFIG_NAME, before, text.encode(), _READABLE)


def _why_not(problem: str) -> str:
    if _LOGIN.search(problem):
        return "its login belongs to the client"
    return f"it could not be asked: {problem}"
