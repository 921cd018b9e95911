"""`DeclaredUpstream`: an MCP server as the settings declare it. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from portbook.globs import matches
from portbook.pins.pin_settings import PinSettings
from portbook.sandbox.declared_sandbox import DeclaredSandbox
from portbook.tools.spec import Effect

__all__ = ["DeclaredUpstream", "Isolation", "StartTime", "UpstreamTransport", "ValueSource"]

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
