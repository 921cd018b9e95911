"""The clients that are known: where each keeps its servers, and how it writes them. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from portbook.adopt.client_document import KeyPath, TextForm
from portbook.model import JSON

__all__ = ["CLIENTS", "EntryStyle", "KnownClient", "client_files"]


@dataclass(frozen=True, slots=True)
class EntryStyle:
    """The keys of an entry, as a client names them."""

    command: str = "command"
    """A program; with `args` None, the program and its arguments as one list."""
    args: str | None = "args"
    env: str = "env"
    urls: tuple[str, ...] = ("url",)
    headers: str = "headers"
    fixed: Mapping[str, JSON] = field(default_factory=dict[str, JSON], hash=False)
    """What every new entry has beside that."""
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
    form: TextForm = "json"
    style: EntryStyle = field(default_factory=EntryStyle)
    project_files: tuple[str, ...] = ()
    """Below a project."""
    processes: tuple[str, ...] = ()
    """Names of its processes."""


_CLINE: Final = "saoudrizwan.claude-dev/settings/cline_mcp_settings.json"

CLIENTS: Final = (
    KnownClient(
        "claude-desktop",
        "Claude Desktop",
        ("{config}/Claude/claude_desktop_config.json",),
        processes=("claude-desktop", "Claude"),
    ),
    KnownClient(
        "claude-code",
        "Claude Code",
        (".claude.json",),
        style=EntryStyle(fixed={"type": "stdio"}),
        project_files=(".mcp.json",),
        processes=("claude",),
    ),
    KnownClient(
        "cursor",
        "Cursor",
        (".cursor/mcp.json",),
        project_files=(".cursor/mcp.json",),
        processes=("cursor", "Cursor"),
    ),
    KnownClient(
        "vscode",
        "VS Code",
        ("{config}/Code/User/mcp.json",),
        ("servers",),
        style=EntryStyle(fixed={"type": "stdio"}),
        project_files=(".vscode/mcp.json",),
        processes=("code", "Code"),
    ),
    KnownClient(
        "windsurf",
        "Windsurf",
        (".codeium/windsurf/mcp_config.json",),
        style=EntryStyle(urls=("serverUrl", "url")),
        processes=("windsurf", "Windsurf"),
    ),
    KnownClient(
        "zed",
        "Zed",
        (".config/zed/settings.json",),
        ("context_servers",),
        style=EntryStyle(fixed={"source": "custom"}),
        processes=("zed", "zed-editor"),
    ),
    KnownClient(
        "codex",
        "Codex",
        (".codex/config.toml",),
        ("mcp_servers",),
        "toml",
        style=EntryStyle(headers="http_headers"),
        project_files=(".codex/config.toml",),
        processes=("codex",),
    ),
    KnownClient(
        "gemini",
        "Gemini CLI",
        (".gemini/settings.json",),
        style=EntryStyle(urls=("httpUrl", "url")),
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
            fixed={"type": "stdio", "enabled": True, "timeout": 300},
            has_name=True,
        ),
        processes=("goose", "goosed"),
    ),
    KnownClient(
        "continue",
        "Continue",
        (".continue/config.yaml",),
        form="yaml",
        style=EntryStyle(has_name=True),
    ),
    KnownClient(
        "cline", "Cline", (f"{{config}}/Code/User/globalStorage/{_CLINE}",), processes=("code", "Code")
    ),
    KnownClient("lm-studio", "LM Studio", (".lmstudio/mcp.json",), processes=("lm-studio", "LM Studio")),
    KnownClient(
        "opencode",
        "opencode",
        (".config/opencode/opencode.jsonc", ".config/opencode/opencode.json"),
        ("mcp",),
        style=EntryStyle(args=None, env="environment", fixed={"type": "local", "enabled": True}),
        processes=("opencode",),
    ),
    KnownClient("kiro", "Kiro", (".kiro/settings/mcp.json",), processes=("kiro", "Kiro")),
    KnownClient(
        "copilot",
        "Copilot CLI",
        (".copilot/mcp-config.json",),
        style=EntryStyle(fixed={"type": "local", "tools": ["*"]}),
        processes=("copilot",),
    ),
    KnownClient("amp", "Amp", (".config/amp/settings.json",), ("amp.mcpServers",), processes=("amp",)),
    KnownClient("junie", "Junie", (".junie/mcp/mcp.json",), processes=("junie",)),
)


def client_files(client: KnownClient, home: Path, *, is_mac: bool) -> Iterator[Path]:
    """Yield the files in which a client keeps the servers of its user."""
    config = "Library/Application Support" if is_mac else ".config"
    return (home / name.replace("{config}", config) for name in client.files)
