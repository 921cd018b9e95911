"""`AdoptedServer`: a server of the settings, and the clients' entries that it comes from. Pure: no I/O."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from portbook.adopt.client_document import entries_at, names_without_entry
from portbook.adopt.json_toml_yaml_edits import toml_value
from portbook.adopt.secrets_and_left_in_place import (
    is_secret,
    may_be_secret,
    secret_file_of,
    secrets_in,
    why_left,
)
from portbook.exports.client_table import EntryStyle, KeyPath, KnownClient
from portbook.model import JSON, JSONObject
from portbook.redaction.detectors import spans_of_shapes
from portbook.text.late_pattern import late_pattern

__all__ = [
    "AdoptedServer",
    "FoundServer",
    "ServerPlace",
    "adopted_servers",
    "found_servers",
    "is_ours",
    "is_reserved",
    "places_of",
    "plain_alias",
    "settings_text",
    "unreserved",
]

# `FoundServer`: a server in a client's configuration.

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
    for name in names_without_entry(whole, place.path):
        yield FoundServer(place, name, left="it is not an object with a name")


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


# The server of the settings that it becomes, and where its secrets are put.

_MAX_ALIAS: Final = 40
_NOT_IN_ALIAS: Final = late_pattern(r"[^a-z0-9]+")
_NOT_IN_VARIABLE: Final = late_pattern(r"[^A-Za-z0-9]+")
_REFERENCE: Final = late_pattern(r"\$\{|\{env:")

# The variables of our entry at each place, with their values.
_Values = dict[ServerPlace, dict[str, str]]

# What a table has from the entry of a client.
_OF_ENTRIES: Final = frozenset({"command", "cwd", "env", "url", "headers"})

_HEAD: Final = """\
# Written by `portbook adopt`; `portbook adopt --undo` takes it back.
# What these servers offer is approved in portbook.lock. `portbook review` shows what has changed since.

[policy]
# effects = ["read"]     # only calls that read
# approval = "writes"    # a person approves calls that write

[docs]
enabled = false

[audit]
log_dir = {log_dir}
"""


@dataclass(frozen=True, slots=True)
class AdoptedServer:
    """One server of the settings."""

    alias: str
    found: tuple[FoundServer, ...]
    """Its entries; they have the same command or address, and may have different values of variables."""
    variables: Mapping[str, str]
    """The name of each of its variables in the entry of a client, by its own name."""
    header_variables: Mapping[str, str]
    """Headers whose value only the client fills in: the variable of its entry that has it."""
    header_files: Mapping[str, str]
    """Headers whose value is in a file beside the settings: the name of the file."""
    sandbox: JSONObject | None = None
    """How it is confined, as a table of the settings."""

    @property
    def secrets(self) -> dict[str, str]:
        """Return the files of its headers, with what is in them."""
        values = dict(self.found[0].headers)
        return {file: values[name] for name, file in self.header_files.items()}

    def values_of(self, server: FoundServer) -> dict[str, str]:
        """Return the variables that the client's entry needs for this server, with their values."""
        env, headers = dict(server.env), dict(server.headers)
        return {
            **{new: env[name] for name, new in self.variables.items()},
            **{new: headers[name] for name, new in self.header_variables.items()},
        }

    def table(self) -> JSONObject:
        """Return its table of the settings."""
        first = self.found[0]
        if first.url is not None:
            headers: JSONObject = {
                **{name: {"file": file} for name, file in self.header_files.items()},
                **{name: {"env": variable} for name, variable in self.header_variables.items()},
            }
            return {"url": first.url, **({"headers": headers} if headers else {})}
        env: JSONObject = {name: self._reference(name) for name in self.variables}
        table: JSONObject = {"command": list(first.command), "cwd": first.cwd or "inherit"}
        confined: JSONObject = {} if self.sandbox is None else {"sandbox": self.sandbox}
        return {**table, **({"env": env} if env else {}), **confined}

    def is_declared_by(self, table: Mapping[str, JSON]) -> bool:
        """Return whether a table of the settings is this server's; an operator may have added to it."""
        return {key: value for key, value in table.items() if key in _OF_ENTRIES} == self.table()

    def _reference(self, name: str) -> JSONObject:
        """Return where a variable gets its value; a word or a path must not be redacted from results."""
        values = [dict(each.env)[name] for each in self.found]
        reference: JSONObject = {"env": self.variables[name]}
        is_secret = any(may_be_secret(name, value) for value in values)
        return reference if is_secret else {**reference, "secret": False}


def adopted_servers(
    found: Iterable[FoundServer], tables: Mapping[str, Any], ours: Iterable[FoundServer] = ()
) -> list[AdoptedServer]:
    """Return the servers of some entries, one for all entries of the same server.

    `tables` are the servers that the settings have already; an entry of one of them gets its alias.
    `ours` are the entries of Portbook in clients' files: their variables keep their values.
    """
    values: _Values = defaultdict(dict)
    for each in ours:
        values[each.place] |= each.env
    taken: set[str] = set()
    adopted: list[AdoptedServer] = []
    for entries in _groups(found):
        server = _adopted(entries, {*taken, *tables}, values)
        for alias, table in tables.items():
            known = _adopted(entries, taken, values, alias)
            if known.is_declared_by(table) and alias not in taken:
                server = known
        taken.add(server.alias)
        for each in entries:
            values[each.place] |= server.values_of(each)
        adopted.append(server)
    return adopted


def _groups(found: Iterable[FoundServer]) -> list[list[FoundServer]]:
    """Return entries by server.

    Entries of two clients may differ in their values: each client has its own. At one place, different values
    mean two accounts of one program, which are two servers.
    """
    groups: list[list[FoundServer]] = []
    for each in found:
        possible = [group for group in groups if _may_join(each, group)]
        if possible:
            max(possible, key=lambda group: _closeness(each, group)).append(each)
        else:
            groups.append([each])
    return groups


def _may_join(server: FoundServer, group: list[FoundServer]) -> bool:
    return group[0].identity == server.identity and all(
        other.place != server.place or dict(other.env) == dict(server.env) for other in group
    )


def _closeness(server: FoundServer, group: list[FoundServer]) -> tuple[bool, bool]:
    """Return how well an entry fits: the same account first, then the same name."""
    has_values = any(dict(other.env) == dict(server.env) for other in group)
    return has_values, any(other.name == server.name for other in group)


def _adopted(
    entries: list[FoundServer], taken: Collection[str], values: _Values, alias: str | None = None
) -> AdoptedServer:
    first = entries[0]
    alias = alias or _alias(first.name, taken)
    prefix = f"{alias.upper()}_"

    def variable(name: str) -> str:
        wanted = [(values[each.place], dict(each.env)[name]) for each in entries]
        is_free = all(there.get(name, value) == value for there, value in wanted)
        return name if is_free and not is_reserved(name) else unreserved(prefix, name)

    referring = [name for name, value in first.headers if _REFERENCE.search(value)]
    return AdoptedServer(
        alias,
        tuple(entries),
        {name: variable(name) for name, _ in first.env},
        {name: unreserved(prefix, _NOT_IN_VARIABLE.sub("_", name).upper()) for name in referring},
        {name: secret_file_of(alias, name) for name, _ in first.headers if name not in referring},
    )


def plain_alias(name: str) -> str:
    """Return the alias of a server with this name in a client, where no other server has it."""
    plain = re.sub(_NOT_IN_ALIAS.pattern, "_", name.casefold()).strip("_")[: _MAX_ALIAS - 3].strip("_")
    return plain or "server"


def _alias(name: str, taken: Collection[str]) -> str:
    plain = plain_alias(name)
    number = 1
    alias = plain
    while alias in taken:
        number += 1
        alias = f"{plain}_{number}"
    return alias


def settings_text(
    before: str | None, servers: Iterable[AdoptedServer], known: Collection[str], log_dir: str
) -> str:
    """Return the settings with the servers that they lack; `known` are the aliases that they have."""
    text = _HEAD.format(log_dir=toml_value(log_dir)) if before is None else before
    if text and not text.endswith("\n"):
        text += "\n"
    for server in servers:
        if server.alias not in known:
            lines = [f"{key} = {toml_value(value)}" for key, value in server.table().items()]
            text += f"\n[mcp.{server.alias}]\n" + "\n".join(lines) + "\n"
    return text


# Names of variables that an entry of a client must not have: they change Portbook itself.
#
# The entry starts one Portbook for all servers of a client. A variable that Python, the loader, the system's
# libraries or Portbook read would stop it or lead it elsewhere, and would reach the other servers, too.

_STARTS: Final = ("PYTHON", "LD_", "DYLD_", "LC_", "XDG_", "SSL_CERT_", "OPENSSL_", "PORTBOOK_", "UV_")
_ENDS: Final = ("_PROXY",)
_RESERVED_NAMES: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "TEMP", "TMP", "LANG", "LANGUAGE", "TZ"}
    | {"TERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "VIRTUAL_ENV", "GLIBC_TUNABLES"}
)
_PREFIX: Final = "ADOPTED_"


def is_reserved(name: str) -> bool:
    """Return whether a variable changes what Portbook, or every server of a client, does."""
    known = name.upper()  # libraries read some of them in small letters, such as https_proxy
    return known in _RESERVED_NAMES or known.startswith(_STARTS) or known.endswith(_ENDS)


def unreserved(prefix: str, name: str) -> str:
    """Return a name for a server's own variable in an entry; the prefix alone may make a reserved one."""
    made = prefix + name
    return made if not made.upper().startswith(_STARTS) else _PREFIX + made
