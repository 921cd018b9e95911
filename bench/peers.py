"""The servers that are measured, each as a command in an environment of its own.

The environments are those of the interop tests, under `.venv`: made on first use, each with its bytecode.
Portbook, too, runs in one that holds what it needs and nothing else.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import sdks  # noqa: E402 - found beside the tests

__all__ = [
    "PEERS",
    "ROOT",
    "SERVERS",
    "Unavailable",
    "bare_http",
    "before_an_api",
    "compile_portbook",
    "payload_floor",
    "portbook",
    "portbook_alone",
    "proxied_http",
    "sdk_over_http",
]

SERVERS: Final = ROOT / "bench" / "servers"
Unavailable = sdks.Unavailable


def portbook(toolset: str, *options: str) -> list[str]:
    """Return the command that serves a toolset of `bench/servers`, and its records in its folder."""
    served = ["serve", *options, str(SERVERS / toolset)]
    return [*portbook_alone(), *served, "--config", "portbook.toml", "--log-dir", "log"]


def portbook_alone() -> list[str]:
    """Return the command line of Portbook, in the environment that it is measured in."""
    return [str(sdks.runtime()), "-m", "portbook"]


def compile_portbook() -> None:
    """Write the bytecode of the checkout, as an installed package has it."""
    command = [str(sdks.runtime()), "-m", "compileall", "-q", str(ROOT / "src"), str(SERVERS)]
    subprocess.run(command, check=True)


def sdk_over_http(port: int, *options: str) -> list[str]:
    """Return the command that serves the official Python SDK over HTTP."""
    return [*_python_sdk(), "--http", str(port), *options]


def bare_http(port: int) -> list[str]:
    """Return the command of the floor over HTTP."""
    return [str(sdks.runtime()), str(SERVERS / "bare_http.py"), str(port)]


def payload_floor() -> list[str]:
    """Return the command of the floor of a payload over STDIO; it needs this folder on its path."""
    return [str(sdks.runtime()), "-m", "bench.payload_floor"]


def before_an_api(*command: str) -> list[str]:
    """Return the command that starts an HTTP API and becomes `command`, or our HTTP client alone."""
    return [str(sdks.runtime()), str(SERVERS / "before_an_api.py"), *command]


def proxied_http(name: str) -> Callable[[int], list[str]]:
    """Return the command, by its port, of a proxy in front of that floor: `caddy` or `traefik`."""
    return lambda port: [str(sdks.proxies()), str(SERVERS / "proxied_http.py"), name, str(port)]


def _python_sdk() -> list[str]:
    return [str(sdks.python_sdk()), str(SERVERS / "sdk_echo.py")]


def _fastmcp() -> list[str]:
    return [str(sdks.fastmcp()), str(SERVERS / "fastmcp_echo.py")]


def _typescript() -> list[str]:
    modules = sdks.typescript_sdk()
    server = modules.folder / "echo.mjs"  # node looks for packages around the file
    shutil.copyfile(SERVERS / "typescript_echo.mjs", server)
    return [modules.node.node, str(server)]


def _bare_loop() -> list[str]:
    return [str(sdks.runtime()), str(SERVERS / "bare_loop.py")]


# By the name that tables show; each returns its command, and raises `Unavailable` where it cannot be made.
PEERS: Final[dict[str, Callable[[], list[str]]]] = {
    f"official Python SDK {sdks.PYTHON_SDK}": _python_sdk,
    f"FastMCP {sdks.FASTMCP}": _fastmcp,
    f"official TypeScript SDK {sdks.TYPESCRIPT_SDK_SERVER}": _typescript,
    "bare loop": _bare_loop,
}
