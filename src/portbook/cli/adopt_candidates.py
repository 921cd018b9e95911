"""What `portbook adopt` finds: the servers of clients, what they offer, the settings they would have."""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from portbook.adopt.adopted_server import AdoptedServer, adopted_servers, plain_alias
from portbook.adopt.adoption_plan import ClientFile, read_client_file
from portbook.adopt.client_document import NotReadable
from portbook.adopt.file_change import FileChange, read_if_there
from portbook.adopt.found_server import FoundServer, ServerPlace, is_ours
from portbook.cli.adopt_offers import AdoptOffers
from portbook.cli.adopt_report import ServerRow, found_line
from portbook.cli.options import settings_from
from portbook.escaping import escaped_lines
from portbook.exports.client_table import CLIENTS, KnownClient, client_files
from portbook.settings import CONFIG_NAME, BadSettings
from portbook.upstreams.mcp_table import read_mcp

__all__ = ["Survey", "home_folder", "portbook_command", "survey_clients"]

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
    if file.is_read_only:
        return "its file is read-only"
    if not file.is_replaceable:
        return "its folder cannot be written"
    return server.left
