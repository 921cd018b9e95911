"""Gateways in front of one fast server: Portbook, and those that people know, each as a command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Final

from bench.peers import ROOT, SERVERS

sys.path.insert(0, str(ROOT / "tests"))

from support import sdks

__all__ = ["OVER_HTTP", "OVER_STDIO", "portbook_in_front", "upstream_settings"]


def _upstream() -> list[str]:
    return [str(sdks.runtime()), str(SERVERS / "fast_upstream.py")]


def upstream_settings() -> str:
    """Return the settings of a Portbook that stands in front of the server."""
    command = json.dumps(_upstream())
    return f'[docs]\nenabled = false\n[mcp.fast]\ncommand = {command}\ntrust = "first-use"\nprefix = false\n'


def portbook_in_front(*options: str) -> list[str]:
    """Return the command of such a Portbook."""
    serve = ["-m", "portbook", "serve", *options, "--config", "portbook.toml", "--log-dir", "log"]
    return [str(sdks.runtime()), *serve]


def _fastmcp(_: int) -> list[str]:
    return [str(sdks.fastmcp()), str(SERVERS / "fastmcp_proxy.py"), *_upstream()]


def _hangar(_: int) -> list[str]:
    return [str(sdks.mcp_hangar()), str(SERVERS / "hangar_gateway.py"), *_upstream()]


def _mcp_proxy(port: int) -> list[str]:
    program = sdks.mcp_proxy().with_name("mcp-proxy")
    return [str(program), "--port", str(port), "--log-level", "ERROR", "--", *_upstream()]


# By the name that tables show; each returns its command by a port, which is 0 over STDIO.
OVER_STDIO: Final[dict[str, Callable[[int], list[str]]]] = {
    f"through the proxy of FastMCP {sdks.FASTMCP}": _fastmcp,
    f"through mcp-hangar {sdks.MCP_HANGAR}": _hangar,
}
OVER_HTTP: Final[dict[str, Callable[[int], list[str]]]] = {
    f"through mcp-proxy {sdks.MCP_PROXY} over http": _mcp_proxy,
}
