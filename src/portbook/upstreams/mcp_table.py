"""The `[mcp]` table of the settings as declared servers. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, cast

from portbook.apis.table_reader import Complain, Table
from portbook.globs import matches
from portbook.net.destinations import BadDestination, parse_url
from portbook.pins.on_change import PIN_KEYS, PinSettings, read_pin_settings
from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.sandbox.declared_sandbox import DeclaredSandbox, read_sandbox
from portbook.tools.spec import Effect

__all__ = [
    "DeclaredUpstream",
    "Isolation",
    "StartTime",
    "UpstreamTransport",
    "ValueSource",
    "read_mcp",
]

# `DeclaredUpstream`: an MCP server as the settings declare it.

UpstreamTransport = Literal["stdio", "http", "sse"]
StartTime = Literal["lazy", "eager"]
Isolation = Literal["shared", "session"]


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Where a variable or a header of a server gets its value."""

    text: str | None = None
    env: str | None = None
    file: Path | None = None
    command: tuple[str, ...] = ()
    is_secret: bool = True
    """Whether the value is redacted everywhere; text in the settings never is."""


@dataclass(frozen=True, slots=True)
class DeclaredUpstream:
    """One table of `[mcp]`."""

    alias: str
    transport: UpstreamTransport
    command: tuple[str, ...] = ()
    """The program to start and its arguments, where it is spoken to over its standard streams."""
    url: str | None = None
    env: Mapping[str, ValueSource] = field(default_factory=dict[str, ValueSource])
    headers: Mapping[str, ValueSource] = field(default_factory=dict[str, ValueSource])
    tools: tuple[str, ...] = ("*",)
    """Patterns of its own names of the tools that are served."""
    has_prefix: bool = True
    effects: Mapping[str, Effect] = field(default_factory=dict[str, Effect])
    """The effects that the operator states, by its own names of tools."""
    is_enforced: bool = True
    """Whether an answer that breaks its schema fails the call; otherwise the operator is warned."""
    revision: str | None = None
    """The revision that it is spoken to in; None where it is asked."""
    may_ask: frozenset[str] = frozenset({"elicitation", "roots"})
    timeout_ms: int = 30_000
    start: StartTime = "lazy"
    idle_s: int = 600
    isolation: Isolation = "shared"
    sandbox: DeclaredSandbox | None = None
    """How its program is confined; None where it has the rights of this process."""
    pins: PinSettings = field(default_factory=PinSettings)
    folder: Path = field(default_factory=Path)
    """Where the settings are."""
    cwd: Path | None = None
    """Where its program starts, if not there."""

    @property
    def starts_in(self) -> Path:
        """Return the folder that its program starts in."""
        return self.folder if self.cwd is None else self.cwd

    place: str = ""
    """Where the settings say how its tools are named, for messages: file, line and column."""

    def serves(self, name: str) -> bool:
        """Return whether the operator wants the tool with this name of the server's own."""
        return matches(self.tools, name)


# The longest name that MCP lets a tool have.
_MAX_PATTERN: Final = 128
# Joined to names with `__`, so a single `_` only.
_ALIAS: Final = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*", re.ASCII)
_MAX_ALIAS: Final = 40
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
# What the connection sets itself.
_OURS: Final = frozenset(
    {"host", "content-length", "content-type", "accept", "connection", "transfer-encoding"}
)

_KEYS: Final = (
    *("command", "cwd", "url", "transport", "env", "headers", "tools", "prefix", "effects", "validation"),
    *PIN_KEYS,
    *("revision", "may_ask", "timeout_ms", "start", "idle_s", "isolation", "sandbox"),
)
# In place of a path: the folder that Portbook itself was started in.
_INHERITED: Final = "inherit"
_ASKS: Final = ("elicitation", "sampling", "roots")
_NUL: Final = "has a character that no program can be given; leave out \\u0000"
_WANTED: Final = 'must be a string, { env = "NAME" }, { file = "path" } or { command = ["program", "…"] }'


def read_mcp(
    tables: Mapping[str, Any],
    folder: Path,
    complain: Complain,
    place_of: Callable[..., str] = lambda *_path: "",
) -> tuple[DeclaredUpstream, ...]:
    """Return the servers that `tables` declare; relative paths start in `folder`.

    `place_of` returns where the settings have a key, for messages.

    Raises the exception of `complain` for the first mistake.
    """
    return tuple(
        replace(
            _server(alias, Table(table, ("mcp", alias), complain), folder),
            place=place_of("mcp", alias, "prefix"),
        )
        for alias, table in tables.items()
    )


def _server(alias: str, table: Table, folder: Path) -> DeclaredUpstream:
    if not _ALIAS.fullmatch(alias) or len(alias) > _MAX_ALIAS:
        raise table.wrong(None, f"is not an alias: use 1 to {_MAX_ALIAS} of a-z, 0-9 and single _")
    table.only(_KEYS)
    transport = _transport(table)
    is_program = transport == "stdio"
    for key in ("headers",) if is_program else ("env", "cwd", "sandbox"):
        if key in table:
            raise table.wrong(key, f"is only for servers with a {'url' if is_program else 'command'}")
    return DeclaredUpstream(
        alias=alias,
        transport=transport,
        command=table.texts("command") or (),
        url=table.text("url"),
        env=_values(table, "env", folder) if is_program else {},
        headers=_values(table, "headers", folder) if not is_program else {},
        tools=_patterns(table),
        has_prefix=table.switch("prefix") is not False,
        effects=_effects(table),
        is_enforced=table.choice("validation", ("enforce", "warn")) != "warn",
        revision=table.choice("revision", tuple(REVISIONS)),
        may_ask=_may_ask(table),
        timeout_ms=table.whole("timeout_ms", 100, 3_600_000) or 30_000,
        start=cast("StartTime", table.choice("start", ("lazy", "eager")) or "lazy"),
        idle_s=_or(table.whole("idle_s", 0, 86_400), 600),
        isolation=cast("Isolation", table.choice("isolation", ("shared", "session")) or "shared"),
        sandbox=read_sandbox(table.table("sandbox"), folder) if "sandbox" in table else None,
        pins=read_pin_settings(table),
        folder=folder,
        cwd=_cwd(table, folder),
    )


def _transport(table: Table) -> UpstreamTransport:
    command, url = table.texts("command"), table.text("url")
    if (command is None) == (url is None):
        problem = "needs either command or url" if url is None else "has both command and url; leave out one"
        raise table.wrong(None, problem)
    named = table.choice("transport", ("stdio", "http", "sse"))
    if command is not None:
        if not command:
            raise table.wrong("command", "must name a program")
        if any("\0" in each for each in command):
            raise table.wrong("command", _NUL)
        if named not in (None, "stdio"):
            raise table.wrong("transport", "must be stdio for a command")
        return "stdio"
    assert url is not None
    try:
        parse_url(url)
    except BadDestination as error:
        raise table.wrong("url", f"cannot be used: {error}") from None
    if named == "stdio":
        raise table.wrong("transport", "must be http or sse for a url")
    return "sse" if named == "sse" else "http"


def _cwd(table: Table, folder: Path) -> Path | None:
    given = table.text("cwd")
    if given is not None and "\0" in given:
        raise table.wrong("cwd", _NUL)
    if given == _INHERITED:
        return Path()
    return None if given is None else folder / given


def _values(table: Table, key: str, folder: Path) -> dict[str, ValueSource]:
    if key not in table:
        return {}
    values = table.table(key)
    for name in values:
        if key == "env" and not _VARIABLE.fullmatch(name):
            raise values.wrong(name, "is not the name of a variable")
        if key == "headers" and (not _HEADER.fullmatch(name) or _is_ours(name)):
            raise values.wrong(name, "is not a header that can be set")
    return {name: _value(values, name, key, folder) for name in values}


def _is_ours(name: str) -> bool:
    return name.lower() in _OURS or name.lower().startswith("mcp-")


def _value(values: Table, name: str, key: str, folder: Path) -> ValueSource:
    given = values.value(name)
    if isinstance(given, str):
        if not given.isprintable() and key == "headers":
            raise values.wrong(name, "has characters that cannot be sent in a header")
        if "\0" in given:
            raise values.wrong(name, _NUL)
        return ValueSource(text=given)
    if not isinstance(given, dict):
        raise values.wrong(name, _WANTED)
    source = values.table(name)
    source.only(("env", "file", "command", "secret"))
    env, file, command = source.text("env"), source.text("file"), source.texts("command")
    if sum(each is not None for each in (env, file, command)) != 1 or command == ():
        raise values.wrong(name, _WANTED)
    return ValueSource(
        env=env,
        file=None if file is None else folder / file,
        command=command or (),
        is_secret=source.switch("secret") is not False,
    )


def _patterns(table: Table) -> tuple[str, ...]:
    patterns = table.texts("tools")
    for pattern in patterns or ():
        if not 0 < len(pattern) <= _MAX_PATTERN or not pattern.isprintable():
            raise table.wrong("tools", "must be names as the server has them; * is any characters, ? is one")
    return ("*",) if patterns is None else patterns


def _effects(table: Table) -> dict[str, Effect]:
    if "effects" not in table:
        return {}
    effects = table.table("effects")
    return {name: Effect(effects.choice(name, tuple(Effect)) or Effect.DESTRUCTIVE) for name in effects}


def _may_ask(table: Table) -> frozenset[str]:
    named = table.texts("may_ask")
    for name in named or ():
        if name not in _ASKS:
            raise table.wrong("may_ask", f"must be a list of {', '.join(_ASKS)}")
    return frozenset(("elicitation", "roots") if named is None else named)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
