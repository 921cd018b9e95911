"""`FoundServer`: a server in a client's configuration. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portbook.adopt.client_document import entries_at
from portbook.adopt.left_in_place import why_left
from portbook.adopt.secrets_of_entry import is_secret, may_be_secret, secrets_in
from portbook.exports.client_table import EntryStyle, KeyPath, KnownClient
from portbook.model import JSON, JSONObject
from portbook.redaction.detectors import spans_of_shapes

__all__ = ["FoundServer", "ServerPlace", "found_servers", "is_ours", "places_of"]

_MASK: Final = "[redacted]"


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where entries stand: a file of a client, and the place in it."""

    client: KnownClient
    file: Path
    path: KeyPath


@dataclass(frozen=True, slots=True)
class FoundServer:
    """One entry."""

    place: ServerPlace
    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    url: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    left: str | None = None
    """Why it stays where it is; None where it can be adopted."""

    @property
    def identity(self) -> tuple[object, ...]:
        """Return what two entries of the same server have in common; values of variables may differ."""
        names = tuple(sorted(name for name, _ in self.env))
        return (self.command, names, self.url, self.headers, self.cwd)

    @property
    def shown(self) -> str:
        """Return the command or the address, for people; what looks like a secret is not in it."""
        program, *arguments = self.command or (str(self.url or "").split("?")[0],)
        secrets = self.secret_values
        shown = [_shown_argument(each, secrets) for each in arguments]
        words = " ".join((Path(program).name if self.command else program, *shown))
        for start, end in sorted(spans_of_shapes(words), reverse=True):
            words = words[:start] + _MASK + words[end:]
        return words

    @property
    def clear_secrets(self) -> int:
        """Return how many values that are named like secrets, or look like them, stand in the clear."""
        values = (*self.env, *self.headers, ("", self.url or ""))
        return sum(is_secret(name, value) for name, value in values) + len([*secrets_in(self.command)])

    @property
    def secret_values(self) -> frozenset[str]:
        """Return every value that is not to be shown: secrets, what may be one, and all of its headers."""
        variables = {value for name, value in self.env if may_be_secret(name, value)}
        url = {self.url} if self.url is not None and is_secret("", self.url) else set[str]()
        return frozenset({value for _, value in self.headers} | variables | url | {*secrets_in(self.command)})


def places_of(client: KnownClient, file: Path, whole: JSON) -> Iterator[ServerPlace]:
    """Yield the places of a document that can have servers: Claude Code has some for each project, too."""
    yield ServerPlace(client, file, client.path)
    if client.name == "claude-code" and isinstance(whole, dict):
        projects = whole.get("projects")
        for project in projects if isinstance(projects, dict) else ():
            yield ServerPlace(client, file, ("projects", project, "mcpServers"))


def found_servers(place: ServerPlace, whole: JSON) -> Iterator[FoundServer]:
    """Yield the servers at a place of a document."""
    for name, entry in entries_at(whole, place.path).items():
        yield _found(place, name, entry)


def is_ours(server: FoundServer, settings: Path) -> bool:
    """Return whether an entry starts Portbook with these settings."""
    return "--config" in server.command and str(settings) in server.command


def _found(place: ServerPlace, name: str, entry: JSONObject) -> FoundServer:
    style = place.client.style
    command = _command(entry, style)
    url = next((str(entry[key]) for key in style.urls if isinstance(entry.get(key), str)), None)
    env, headers = _texts(entry.get(style.env)), _texts(entry.get(style.headers))
    cwd = entry.get("cwd")
    return FoundServer(
        place,
        name,
        command,
        env or (),
        url,
        headers or (),
        cwd if isinstance(cwd, str) else None,
        why_left(entry, style, command, url, env, headers),
    )


def _command(entry: JSONObject, style: EntryStyle) -> tuple[str, ...]:
    program = entry.get(style.command)
    if isinstance(program, dict):  # the older form of Zed
        return _command({**program, style.command: program.get("path")}, style)
    if style.args is None:
        return tuple(map(str, program)) if isinstance(program, list) else ()
    args = entry.get(style.args)
    if not isinstance(program, str):
        return ()
    return (program, *(map(str, args) if isinstance(args, list) else ()))


def _texts(value: JSON) -> tuple[tuple[str, str], ...] | None:
    """Return a table of texts; None where it is something else."""
    if value is None:
        return ()
    if not isinstance(value, dict) or not all(isinstance(each, str | int | float) for each in value.values()):
        return None
    return tuple((name, each if isinstance(each, str) else str(each)) for name, each in value.items())


def _shown_argument(argument: str, secrets: Collection[str]) -> str:
    """Return an argument without the secret that it is, or that it gives to a flag."""
    flag, sign, value = argument.partition("=")
    if argument in secrets:
        return _MASK
    return f"{flag}{sign}{_MASK}" if value in secrets and sign else argument
