"""The entry of a server in a client's configuration, and the secrets that the server needs. Pure: no I/O.

Secrets never stand in an entry. Where the client can refer to a variable of its environment, the entry does;
where it cannot, `ClientEntry.left_to_person` names what a person has to add.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from portbook.exports.client_table import EntryStyle, KnownClient
from portbook.model import JSON, JSONObject
from portbook.net.destinations import BadDestination, parse_destination

__all__ = [
    "ClientEntry",
    "ConnectedServer",
    "NeededSecrets",
    "NotForClient",
    "StartedServer",
    "entry_for",
    "needed_secrets",
]

# The variable that holds the caller's key where a client connects to an address.
KEY_VARIABLE: Final = "PORTBOOK_KEY"


class NotForClient(ValueError):
    """A server that the client cannot use; the message says what it can."""


@dataclass(frozen=True, slots=True)
class StartedServer:
    """A server that the client starts."""

    name: str
    command: Sequence[str]
    variables: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ConnectedServer:
    """A server that runs already."""

    name: str
    url: str
    has_key: bool = False

    @property
    def variables(self) -> Sequence[str]:
        """Return the variables that the client needs: its key, where there is one."""
        return (KEY_VARIABLE,) if self.has_key else ()


@dataclass(frozen=True, slots=True)
class ClientEntry:
    """The text for the client's file, what it holds, and the variables that a person has to give."""

    document: JSONObject
    text: str
    left_to_person: tuple[str, ...]


def _require_address(url: str) -> None:
    try:
        parse_destination(url)
    except BadDestination as error:
        raise NotForClient(f"--url: {error}; write it as http://127.0.0.1:8765/mcp") from None


def entry_for(client: KnownClient, server: StartedServer | ConnectedServer) -> ClientEntry:
    """Return the entry of `server` in the form of `client`.

    Raises `NotForClient` where the client cannot connect to an address, or it is none.
    """
    if isinstance(server, ConnectedServer) and not client.style.urls:
        raise NotForClient(f"{client.title} only starts commands; leave out --url")
    if isinstance(server, ConnectedServer):
        _require_address(server.url)
    entry = _SHAPES.get(client.name, _plain)(client, server)
    if client.style.has_name:
        entry = {"name": server.name, **entry}
    document: JSON = [entry] if client.name == "continue" else {server.name: entry}
    for key in reversed(client.path):
        document = {key: document}
    whole = cast("JSONObject", document) | _inputs(client, server)
    refers = client.style.variable is not None or client.name == "goose"
    is_open = bool(server.variables) and not refers
    return ClientEntry(whole, _WRITERS[client.form](whole), tuple(server.variables) if is_open else ())


def _referred(client: KnownClient, names: Sequence[str]) -> dict[str, JSON]:
    """Return the variables as members of an environment; none where the client cannot refer to them."""
    variable = client.style.variable
    return {} if variable is None else {name: variable.replace("%s", name) for name in names}


def _headers(client: KnownClient, server: ConnectedServer) -> JSONObject:
    referred = _referred(client, server.variables).get(KEY_VARIABLE)
    return {} if referred is None else {"Authorization": f"Bearer {referred}"}


def _plain(client: KnownClient, server: StartedServer | ConnectedServer) -> JSONObject:
    style = client.style
    if isinstance(server, ConnectedServer):
        address: JSONObject = {**style.remote, style.urls[0]: server.url}
        return address | _if_any(style.headers, _headers(client, server))
    return _started(style, server.command) | _if_any(style.env, _referred(client, server.variables))


def _started(style: EntryStyle, command: Sequence[str]) -> JSONObject:
    program, *arguments = command
    if style.args is None:
        return {**style.local, style.command: [program, *arguments]}
    return {**style.local, style.command: program, style.args: [*arguments]}


def _codex(client: KnownClient, server: StartedServer | ConnectedServer) -> JSONObject:
    """Codex takes names of variables, for the token and for what a command sees."""
    if isinstance(server, StartedServer):
        found = _started(client.style, server.command)
        if server.variables:
            found["env_vars"] = [*server.variables]
        return found
    return {"url": server.url, **({"bearer_token_env_var": KEY_VARIABLE} if server.has_key else {})}


def _goose(client: KnownClient, server: StartedServer | ConnectedServer) -> JSONObject:
    """Goose asks for the values of `env_keys` itself, and keeps them in the keyring."""
    found = _plain(client, server)
    if isinstance(server, ConnectedServer) and server.has_key:
        found["headers"] = {"Authorization": f"Bearer ${KEY_VARIABLE}"}
    if server.variables:
        found["env_keys"] = [*server.variables]
    return found


def _continue(client: KnownClient, server: StartedServer | ConnectedServer) -> JSONObject:
    found = _plain(client, server)
    headers = found.pop("headers", None)
    if headers is not None:
        found["requestOptions"] = {"headers": headers}
    return found


# The clients that differ in more than the names of members.
_SHAPES: Final[Mapping[str, Callable[[KnownClient, StartedServer | ConnectedServer], JSONObject]]] = {
    "codex": _codex,
    "goose": _goose,
    "continue": _continue,
}


def _inputs(client: KnownClient, server: StartedServer | ConnectedServer) -> JSONObject:
    """Return the questions of VS Code, which asks once and keeps the answers as secrets."""
    if client.name != "vscode" or not server.variables:
        return {}
    asked: list[JSON] = [
        {"type": "promptString", "id": name, "description": name, "password": True}
        for name in server.variables
    ]
    return {"inputs": asked}


def _if_any(name: str, members: Mapping[str, JSON]) -> JSONObject:
    return {name: {**members}} if members else {}


# -- texts


def _as_json(document: JSONObject) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _as_toml(document: JSONObject) -> str:
    """Return tables of two levels of names; strings of JSON are strings of TOML, too."""
    lines: list[str] = []
    for section, servers in document.items():
        for name, entry in cast("dict[str, JSONObject]", servers).items():
            lines += [f"[{section}.{json.dumps(name)}]", *(f"{key} = {_flow(entry[key])}" for key in entry)]
    return "\n".join(lines) + "\n"


def _as_yaml(document: JSONObject) -> str:
    """Return blocks down to the entry, and JSON below it: every JSON text is YAML."""
    lines: list[str] = []
    for section, servers in document.items():
        lines.append(f"{section}:")
        if isinstance(servers, list):
            for entry in cast("list[JSONObject]", servers):
                members = [f"{key}: {_flow(value)}" for key, value in entry.items()]
                lines += [f"  - {members[0]}", *(f"    {member}" for member in members[1:])]
        else:
            for name, entry in cast("dict[str, JSONObject]", servers).items():
                members = [f"{key}: {_flow(value)}" for key, value in entry.items()]
                lines += [f"  {json.dumps(name)}:", *(f"    {member}" for member in members)]
    return "\n".join(lines) + "\n"


def _flow(value: JSON) -> str:
    return json.dumps(value)


_WRITERS: Final = {"json": _as_json, "toml": _as_toml, "yaml": _as_yaml}


# Which secrets the settings refer to: variables that a server needs, files that must not travel.


class NeededSecrets(NamedTuple):
    """The sources of secrets that settings name, each once, in the order of the settings."""

    variables: tuple[str, ...]
    files: tuple[str, ...]


def needed_secrets(tables: Mapping[str, Any]) -> NeededSecrets:
    """Return what `{ env = "NAME" }` and `{ file = "path" }` name, anywhere below `tables`."""
    found = list(_sources(tables))
    variables, files = (
        tuple(dict.fromkeys(name for kind, name in found if kind == wanted)) for wanted in ("env", "file")
    )
    return NeededSecrets(variables, files)


def _sources(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        if len(table) == 1:
            [(key, name)] = table.items()
            if key in ("env", "file") and isinstance(name, str):
                yield key, name
                return
        for below in table.values():
            yield from _sources(below)
    elif isinstance(value, list | tuple):
        for below in cast("list[Any]", value):
            yield from _sources(below)
