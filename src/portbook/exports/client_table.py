"""The MCP clients that are known: where each keeps its servers, and how it writes them. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from portbook.model import JSON

__all__ = ["CLIENTS", "EntryStyle", "KeyPath", "KnownClient", "TextForm", "client_files"]

TextForm: TypeAlias = Literal["json", "toml", "yaml"]
KeyPath: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntryStyle:
    """The keys of an entry, as a client names them."""

    command: str = "command"
    """A program; with `args` None, the program and its arguments as one list."""
    args: str | None = "args"
    env: str = "env"
    urls: tuple[str, ...] = ("url",)
    """The members that can have an address, the best one first; none where a client only starts commands."""
    headers: str = "headers"
    local: Mapping[str, JSON] = field(default_factory=dict[str, JSON], hash=False)
    """What every new entry with a command has beside it."""
    remote: Mapping[str, JSON] = field(default_factory=dict[str, JSON], hash=False)
    """What every new entry with an address has beside it."""
    variable: str | None = None
    """How a value refers to a variable of the client's environment; None where it cannot."""
    has_name: bool = False
    """Whether an entry repeats its name as a member."""


@dataclass(frozen=True, slots=True)
class KnownClient:
    """One client."""

    name: str
    """As people write it on a command line."""
    title: str
    files: tuple[str, ...]
    """Below the home folder; of several, all that exist are read. `{config}` is the folder of settings."""
    path: KeyPath = ("mcpServers",)
    """The members that lead to the servers."""
    form: TextForm = "json"
    style: EntryStyle = field(default_factory=EntryStyle)
    project_files: tuple[str, ...] = ()
    """Below a project."""
    processes: tuple[str, ...] = ()
    """Names of its processes."""

    @property
    def shown_file(self) -> str:
        """Return where people find its configuration: in a project, if that is a place for it."""
        if self.project_files:
            return self.project_files[0]
        home = self.files[-1]
        return home.rpartition("/")[2] if home.startswith(_CONFIG) else f"~/{home}"


# Its place differs by system.
_CONFIG: Final = "{config}"
_CLINE: Final = "saoudrizwan.claude-dev/settings/cline_mcp_settings.json"

CLIENTS: Final = (
    KnownClient(
        "claude-desktop",
        "Claude Desktop",
        ("{config}/Claude/claude_desktop_config.json",),
        style=EntryStyle(urls=()),
        processes=("claude-desktop", "Claude"),
    ),
    KnownClient(
        "claude-code",
        "Claude Code",
        (".claude.json",),
        style=EntryStyle(local={"type": "stdio"}, remote={"type": "http"}, variable="${%s}"),
        project_files=(".mcp.json",),
        processes=("claude",),
    ),
    KnownClient(
        "cursor",
        "Cursor",
        (".cursor/mcp.json",),
        style=EntryStyle(variable="${env:%s}"),
        project_files=(".cursor/mcp.json",),
        processes=("cursor", "Cursor"),
    ),
    KnownClient(
        "vscode",
        "VS Code",
        ("{config}/Code/User/mcp.json",),
        ("servers",),
        style=EntryStyle(local={"type": "stdio"}, remote={"type": "http"}, variable="${input:%s}"),
        project_files=(".vscode/mcp.json",),
        processes=("code", "Code"),
    ),
    KnownClient(
        "windsurf",
        "Windsurf",
        (".codeium/windsurf/mcp_config.json",),
        style=EntryStyle(urls=("serverUrl", "url"), variable="${env:%s}"),
        processes=("windsurf", "Windsurf"),
    ),
    KnownClient(
        "zed",
        "Zed",
        (".config/zed/settings.json",),
        ("context_servers",),
        style=EntryStyle(local={"source": "custom"}),
        processes=("zed", "zed-editor"),
    ),
    KnownClient(
        "codex",
        "Codex",
        (".codex/config.toml",),
        ("mcp_servers",),
        "toml",
        style=EntryStyle(headers="http_headers", variable="%s"),
        project_files=(".codex/config.toml",),
        processes=("codex",),
    ),
    KnownClient(
        "gemini",
        "Gemini CLI",
        (".gemini/settings.json",),
        style=EntryStyle(urls=("httpUrl", "url"), variable="${%s}"),
        processes=("gemini",),
    ),
    KnownClient(
        "goose",
        "Goose",
        (".config/goose/config.yaml",),
        ("extensions",),
        "yaml",
        style=EntryStyle(
            command="cmd",
            env="envs",
            urls=("uri",),
            local={"type": "stdio", "enabled": True, "timeout": 300},
            remote={"type": "streamable_http", "enabled": True, "timeout": 300},
            has_name=True,
        ),
        processes=("goose", "goosed"),
    ),
    KnownClient(
        "continue",
        "Continue",
        (".continue/config.yaml",),
        form="yaml",
        style=EntryStyle(
            local={"type": "stdio"},
            remote={"type": "streamable-http"},
            variable="${{ secrets.%s }}",
            has_name=True,
        ),
    ),
    KnownClient(
        "cline",
        "Cline",
        (f"{{config}}/Code/User/globalStorage/{_CLINE}",),
        style=EntryStyle(local={"type": "stdio"}, remote={"type": "streamableHttp"}),
        processes=("code", "Code"),
    ),
    KnownClient("lm-studio", "LM Studio", (".lmstudio/mcp.json",), processes=("lm-studio", "LM Studio")),
    KnownClient(
        "opencode",
        "opencode",
        (".config/opencode/opencode.jsonc", ".config/opencode/opencode.json"),
        ("mcp",),
        style=EntryStyle(
            args=None,
            env="environment",
            local={"type": "local", "enabled": True},
            remote={"type": "remote", "enabled": True},
            variable="{env:%s}",
        ),
        processes=("opencode",),
    ),
    KnownClient(
        "kiro",
        "Kiro",
        (".kiro/settings/mcp.json",),
        style=EntryStyle(variable="${%s}"),
        processes=("kiro", "Kiro"),
    ),
    KnownClient(
        "copilot",
        "Copilot CLI",
        (".copilot/mcp-config.json",),
        style=EntryStyle(local={"type": "local", "tools": ["*"]}, remote={"type": "http", "tools": ["*"]}),
        processes=("copilot",),
    ),
    KnownClient(
        "amp",
        "Amp",
        (".config/amp/settings.json",),
        ("amp.mcpServers",),
        style=EntryStyle(variable="${%s}"),
        processes=("amp",),
    ),
    KnownClient("junie", "JetBrains Junie", (".junie/mcp/mcp.json",), processes=("junie",)),
)


def client_files(client: KnownClient, home: Path, *, is_mac: bool) -> Iterator[Path]:
    """Yield the files in which a client keeps the servers of its user."""
    config = "Library/Application Support" if is_mac else ".config"
    return (home / name.replace("{config}", config) for name in client.files)
