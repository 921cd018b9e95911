"""The entry of a server in a client's configuration: a command to start, or an address to connect to. Pure.

Secrets never stand in an entry. Where the client can refer to a variable of its environment, the entry does;
where it cannot, `ClientEntry.left_to_person` names what a person has to add.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from portbook.exports.client_forms import ClientRow, Shape
from portbook.model import JSON, JSONObject

__all__ = ["KEY_VARIABLE", "ClientEntry", "ConnectedServer", "NotForClient", "StartedServer", "entry_for"]

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


def entry_for(client: ClientRow, server: StartedServer | ConnectedServer) -> ClientEntry:
    """Return the entry of `server` in the form of `client`.

    Raises `NotForClient` where the client cannot connect to an address.
    """
    if isinstance(server, ConnectedServer) and client.url is None:
        raise NotForClient(f"{client.title} only starts commands; leave out --url")
    entry = _SHAPES[client.shape](client, server)
    document: JSON = [{"name": server.name, **entry}] if client.shape == "continue" else {server.name: entry}
    for key in reversed(client.keys):
        document = {key: document}
    whole = cast("JSONObject", document) | _inputs(client, server)
    refers = client.variable is not None or client.shape == "goose"
    is_open = bool(server.variables) and not refers
    return ClientEntry(whole, _WRITERS[client.form](whole), tuple(server.variables) if is_open else ())


def _referred(client: ClientRow, names: Sequence[str]) -> dict[str, JSON]:
    """Return the variables as members of an environment; none where the client cannot refer to them."""
    if client.variable is None:
        return {}
    return {name: client.variable.replace("%s", name) for name in names}


def _headers(client: ClientRow, server: ConnectedServer) -> JSONObject:
    referred = _referred(client, server.variables).get(KEY_VARIABLE)
    return {} if referred is None else {"Authorization": f"Bearer {referred}"}


def _plain(client: ClientRow, server: StartedServer | ConnectedServer) -> JSONObject:
    if isinstance(server, ConnectedServer):
        assert client.url is not None
        return {**client.remote, client.url: server.url} | _if_any("headers", _headers(client, server))
    program, *arguments = server.command
    found: JSONObject = {**client.local, "command": program, "args": [*arguments]}
    return found | _if_any("env", _referred(client, server.variables))


def _codex(client: ClientRow, server: StartedServer | ConnectedServer) -> JSONObject:
    """Codex takes names of variables, for the token and for what a command sees."""
    if isinstance(server, StartedServer):
        program, *arguments = server.command
        found: JSONObject = {"command": program, "args": [*arguments]}
        if server.variables:
            found["env_vars"] = [*server.variables]
        return found
    return {"url": server.url, **({"bearer_token_env_var": KEY_VARIABLE} if server.has_key else {})}


def _goose(client: ClientRow, server: StartedServer | ConnectedServer) -> JSONObject:
    """Goose asks for the values of `env_keys` itself, and keeps them in the keyring."""
    found: JSONObject = {"name": server.name, "enabled": True, "timeout": 300}
    if isinstance(server, StartedServer):
        program, *arguments = server.command
        found |= {**client.local, "cmd": program, "args": [*arguments]}
    else:
        found |= {**client.remote, "uri": server.url}
        if server.has_key:
            found["headers"] = {"Authorization": f"Bearer ${KEY_VARIABLE}"}
    if server.variables:
        found["env_keys"] = [*server.variables]
    return found


def _continue(client: ClientRow, server: StartedServer | ConnectedServer) -> JSONObject:
    found = _plain(client, server)
    headers = found.pop("headers", None)
    if headers is not None:
        found["requestOptions"] = {"headers": headers}
    return found


def _opencode(client: ClientRow, server: StartedServer | ConnectedServer) -> JSONObject:
    if isinstance(server, ConnectedServer):
        return _plain(client, server) | {"enabled": True}
    found: JSONObject = {**client.local, "command": [*server.command], "enabled": True}
    return found | _if_any("environment", _referred(client, server.variables))


_SHAPES: Final[Mapping[Shape, Callable[[ClientRow, StartedServer | ConnectedServer], JSONObject]]] = {
    "plain": _plain,
    "vscode": _plain,
    "codex": _codex,
    "goose": _goose,
    "continue": _continue,
    "opencode": _opencode,
}


def _inputs(client: ClientRow, server: StartedServer | ConnectedServer) -> JSONObject:
    """Return the questions of VS Code, which asks once and keeps the answers as secrets."""
    if client.shape != "vscode" or not server.variables:
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
