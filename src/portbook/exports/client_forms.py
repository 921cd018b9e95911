"""Which MCP clients there are, where their configuration is, and how they write the entry of a server. Pure.

Most clients take one shape with other names for its parts; a row has these names. `client_entry.py` has the
shapes of the few that differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["CLIENTS", "ClientRow"]

Shape = Literal["plain", "vscode", "codex", "goose", "continue", "opencode"]
Form = Literal["json", "toml", "yaml"]


@dataclass(frozen=True, slots=True)
class ClientRow:
    """One client."""

    title: str
    file: str
    """Where people find its configuration."""
    keys: tuple[str, ...] = ("mcpServers",)
    """The members that lead to the servers."""
    form: Form = "json"
    shape: Shape = "plain"
    local: Mapping[str, str] = field(default_factory=dict[str, str])
    """What an entry that starts a command says beside it."""
    remote: Mapping[str, str] = field(default_factory=dict[str, str])
    """What an entry with an address says beside it."""
    url: str | None = "url"
    """The member that has the address; None where the client only starts commands."""
    variable: str | None = None
    """How a value refers to a variable of the client's environment; None where it cannot."""


CLIENTS: Final[Mapping[str, ClientRow]] = {
    "claude-desktop": ClientRow("Claude Desktop", "claude_desktop_config.json", url=None),
    "claude-code": ClientRow(
        "Claude Code",
        ".mcp.json",
        local={"type": "stdio"},
        remote={"type": "http"},
        variable="${%s}",
    ),
    "cursor": ClientRow("Cursor", ".cursor/mcp.json", variable="${env:%s}"),
    "vscode": ClientRow(
        "VS Code",
        ".vscode/mcp.json",
        ("servers",),
        shape="vscode",
        local={"type": "stdio"},
        remote={"type": "http"},
        variable="${input:%s}",
    ),
    "windsurf": ClientRow(
        "Windsurf", "~/.codeium/windsurf/mcp_config.json", url="serverUrl", variable="${env:%s}"
    ),
    "zed": ClientRow("Zed", "~/.config/zed/settings.json", ("context_servers",)),
    "codex": ClientRow("Codex", "~/.codex/config.toml", ("mcp_servers",), "toml", "codex", variable="%s"),
    "gemini": ClientRow("Gemini CLI", "~/.gemini/settings.json", url="httpUrl", variable="${%s}"),
    "goose": ClientRow(
        "Goose",
        "~/.config/goose/config.yaml",
        ("extensions",),
        "yaml",
        "goose",
        local={"type": "stdio"},
        remote={"type": "streamable_http"},
        url="uri",
    ),
    "continue": ClientRow(
        "Continue",
        "~/.continue/config.yaml",
        form="yaml",
        shape="continue",
        local={"type": "stdio"},
        remote={"type": "streamable-http"},
        variable="${{ secrets.%s }}",
    ),
    "cline": ClientRow(
        "Cline", "cline_mcp_settings.json", local={"type": "stdio"}, remote={"type": "streamableHttp"}
    ),
    "lm-studio": ClientRow("LM Studio", "~/.lmstudio/mcp.json"),
    "opencode": ClientRow(
        "opencode",
        "~/.config/opencode/opencode.json",
        ("mcp",),
        shape="opencode",
        local={"type": "local"},
        remote={"type": "remote"},
        variable="{env:%s}",
    ),
    "kiro": ClientRow("Kiro", "~/.kiro/settings/mcp.json", variable="${%s}"),
    "copilot": ClientRow(
        "Copilot CLI", "~/.copilot/mcp-config.json", local={"type": "stdio"}, remote={"type": "http"}
    ),
    "amp": ClientRow("Amp", "~/.config/amp/settings.json", ("amp.mcpServers",), variable="${%s}"),
    "junie": ClientRow("JetBrains Junie", "~/.junie/mcp/mcp.json"),
}
