"""What `portbook adopt` finds: the servers of clients, what they offer, and why each is adopted or left."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import click

from portbook.adopt.adoption_plan import ClientFile, read_client_file
from portbook.adopt.client_document import NotReadable
from portbook.adopt.file_change import FileChange, read_if_there, write_file
from portbook.adopt.secrets_and_left_in_place import why_file_is_left, why_not_asked
from portbook.adopt.servers_and_aliases import (
    AdoptedServer,
    FoundServer,
    ServerPlace,
    adopted_servers,
    is_ours,
    plain_alias,
    settings_text,
)
from portbook.app.servers_asked_once import ask_servers, declared_servers
from portbook.cli.adopt_report import ServerRow, found_line, masked
from portbook.cli.options import settings_from
from portbook.escaping import escaped_lines
from portbook.exports.client_table import CLIENTS, KnownClient, client_files
from portbook.pins.approved_definitions_in_lock import PinLock, approve
from portbook.pins.on_change import OnChange
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.pins.served_or_withheld import PinVerdicts, judge, without_attacks
from portbook.settings import CONFIG_NAME, BadSettings, Settings
from portbook.stores.lock_file import LOCK_NAME
from portbook.text.late_pattern import late_pattern
from portbook.upstreams.listed_definitions import Offer
from portbook.upstreams.mcp_table import DeclaredUpstream, read_mcp
from portbook.upstreams.trust_by_lock import pinned_part

__all__ = ["Survey", "home_folder", "portbook_command", "survey_clients"]

_PRIVATE: Final = 0o600
_READABLE: Final = 0o644
# A variable that a client fills in from its own environment, with a default.
_VARIABLE: Final = late_pattern(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")
_LEAST_PASSWORD: Final = 4
_PATHS: Final = ("/", "./", "~/")


class AdoptOffers:
    """Servers with what they offer today."""

    def __init__(self, folder: Path, servers: list[AdoptedServer], *, is_confined: bool) -> None:
        """Ask all servers side by side; with `is_confined`, in the sandbox that a trial proposes for each."""
        self._folder = folder
        self._settings = read_if_there(folder / CONFIG_NAME)
        self._lock = read_if_there(folder / LOCK_NAME)
        self._known = tomllib.loads((self._settings or b"").decode()).get("mcp", {})
        self.servers = servers
        self.answers: dict[str, ServerDefinitions | str] = {}
        """By alias, what a server offers, or why it cannot be adopted."""
        if servers and is_confined:
            self._try_out()
        if servers:
            self._ask()

    @property
    def adopted(self) -> list[AdoptedServer]:
        """Return the servers that have said what they offer."""
        return [each for each in self.servers if isinstance(self.answers.get(each.alias), ServerDefinitions)]

    def verdicts(self, alias: str) -> PinVerdicts:
        """Return how the definitions of a server stand before they are approved."""
        observed = self.answers[alias]
        if isinstance(observed, str):
            return {}
        others = {
            other: [*each.tools]
            for other, each in self.answers.items()
            if other != alias and isinstance(each, ServerDefinitions)
        }
        return judge(PinLock.read(self._folder).servers.get(alias), observed, OnChange(), others)

    def files(self) -> tuple[FileChange, ...]:
        """Return the settings, the secrets and the lock as they are to be, where they differ."""
        clean: Mapping[str, ServerDefinitions] = {
            server.alias: without_attacks(offered, self.verdicts(server.alias))
            for server in self.servers
            if isinstance(offered := self.answers[server.alias], ServerDefinitions)
        }
        with tempfile.TemporaryDirectory(prefix="portbook-adopt-") as name:
            if self._lock is not None:
                write_file(Path(name) / LOCK_NAME, self._lock, _PRIVATE)
            approve(Path(name), clean)
            lock = (Path(name) / LOCK_NAME).read_bytes()
        changes = [
            *self._drafts(self.adopted),
            FileChange(self._folder / LOCK_NAME, self._lock, lock, _READABLE),
        ]
        return tuple(change for change in changes if change.before != change.after)

    def _try_out(self) -> None:
        """Give each new server the sandbox that it needs; one that cannot be tried out is not adopted."""
        from portbook.app.sandbox_trial import NoTrial, try_out  # late: few adoptions need it

        new = [each for each in self.servers if each.found[0].command and each.alias not in self._known]
        with self._drafted(new) as (settings, declared):
            outcomes = try_out(settings, declared.values(), self._environ())
        for at, server in enumerate(self.servers):
            outcome = outcomes.get(server.alias)
            if isinstance(outcome, NoTrial):
                self.answers[server.alias] = f"no sandbox could be proposed for it: {outcome}"
            elif outcome is not None:
                # Whole paths: a client may start Portbook with a different home.
                self.servers[at] = replace(server, sandbox=outcome.as_data())

    def _ask(self) -> None:
        left = [each for each in self.servers if each.alias not in self.answers]
        with self._drafted(left) as (settings, declared):
            answers = asyncio.run(ask_servers(settings, declared.values(), self._environ()))
        for alias, answer in answers.items():
            self.answers[alias] = (
                pinned_part(declared[alias], answer)
                if isinstance(answer, Offer)
                else masked(why_not_asked(answer), self._untold(alias))
            )

    def _untold(self, alias: str) -> set[str]:
        """Return values of a server's variables that its last words must not show: any may be a password.

        A path is told, because it is what a server most often complains of; a very short value is in words.
        """
        entries = (found for each in self.servers if each.alias == alias for found in each.found)
        values = {value for found in entries for _, value in found.env}
        return {each for each in values if len(each) >= _LEAST_PASSWORD and not each.startswith(_PATHS)}

    @contextmanager
    def _drafted(
        self, servers: list[AdoptedServer]
    ) -> Generator[tuple[Settings, dict[str, DeclaredUpstream]]]:
        """Write the settings of some servers where nobody sees them; yield them, and the servers by alias."""
        with tempfile.TemporaryDirectory(prefix="portbook-adopt-") as name:
            draft = Path(name)
            for change in self._drafts(servers):
                write_file(draft / change.path.relative_to(self._folder), change.after, _PRIVATE)
            settings = settings_from(draft / CONFIG_NAME)
            wanted = {server.alias for server in servers}
            yield settings, {each.alias: each for each in declared_servers(settings) if each.alias in wanted}

    def _environ(self) -> dict[str, str]:
        environ = dict(os.environ)
        for server in self.servers:
            for name, value in server.values_of(server.found[0]).items():
                environ[name] = _VARIABLE.sub(lambda found: os.environ.get(found[1], found[2] or ""), value)
        return environ

    def _drafts(self, servers: list[AdoptedServer]) -> Iterator[FileChange]:
        for server in servers:
            for name, value in server.secrets.items():
                path = self._folder / name
                yield FileChange(path, read_if_there(path), value.encode(), _PRIVATE)
        before = None if self._settings is None else self._settings.decode()
        text = settings_text(before, servers, self._known, str(self._folder / "runs"))
        yield FileChange(self._folder / CONFIG_NAME, self._settings, text.encode(), _READABLE)


_NO_HOME: Final = "there is no home folder; set HOME, or name files with --file and the folder with --into"


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
        """Return every secret in the entries of clients."""
        return {value for row in self.rows for value in row.found.secret_values}

    def withheld(self) -> dict[str, int]:
        """Return how many tools of each server the scan keeps from being approved."""
        counts = {
            row.server.alias: sum(each.is_quarantined for each in row.verdicts.values())
            for row in self.rows
            if row.server is not None
        }
        return {alias: count for alias, count in counts.items() if count}


def survey_clients(
    folder: Path,
    clients: tuple[str, ...],
    files: tuple[Path, ...],
    names: tuple[str, ...],
    *,
    is_confined: bool,
    tell: Callable[[str], None],
) -> Survey:
    """Return what is there, and what adopting it would make of it. Servers are started, and ended.

    With `is_confined`, each that Portbook starts gets the sandbox that a trial proposes. What is known before
    the servers are asked is told: they may take their time.

    Raises `BadSettings` for settings in `folder` that cannot be used.
    """
    problems: list[str] = []
    read = list(_read_files(clients, files, problems))
    settings = folder / CONFIG_NAME
    every = [each for file in read for each in file.servers]
    ours = [each for each in every if is_ours(each, settings)]
    found = [each for each in every if each not in ours]
    why = {id(each): _why_left(file, each, names) for file in read for each in file.servers}
    tables = _tables(settings)
    _require_known(names, {each.name for each in found}, tables)
    for server in adopted_servers([each for each in found if why[id(each)] is None], tables, ours):
        if problem := _unusable(server, folder):
            why |= {id(each): problem for each in server.found}
    servers = adopted_servers([each for each in found if why[id(each)] is None], tables, ours)
    if found:
        tell(found_line(found, len(servers)))
    offers = AdoptOffers(folder, servers, is_confined=is_confined)
    rows = tuple(_row(each, why[id(each)], offers) for each in found)
    own = offers.files() if offers.adopted else ()
    return Survey(folder, tuple(read), rows, offers.adopted, own, problems)


def _require_known(names: tuple[str, ...], found: Collection[str], tables: Collection[str]) -> None:
    """Raise `UsageError` for a name that no server has: neither one that was found nor one adopted before."""
    for name in names:
        if name not in found and plain_alias(name) not in tables:
            listed = ", ".join(sorted(found)) or "none"
            raise click.UsageError(escaped_lines(f'--server: no server is called "{name}"; found: {listed}'))


def home_folder() -> Path:
    """Return the home of whoever runs the command. Raises `UsageError` where there is none."""
    try:
        return Path.home()
    except RuntimeError:
        raise click.UsageError(_NO_HOME) from None


def _row(found: FoundServer, left: str | None, offers: AdoptOffers) -> ServerRow:
    server = next((one for one in offers.servers if any(found is entry for entry in one.found)), None)
    if server is None:
        return ServerRow(found, None, None, {}, left)
    answer = offers.answers[server.alias]
    if isinstance(answer, str):
        return ServerRow(found, None, None, {}, answer)
    return ServerRow(found, server, answer, offers.verdicts(server.alias), None)


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
        for file in client_files(client, home_folder(), is_mac=sys.platform == "darwin"):
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
    return why_file_is_left(is_read_only=file.is_read_only, is_replaceable=file.is_replaceable) or server.left
