"""What a new user waits for: a first answer, a first own tool, a first call of an API, an approval.

`python -m bench.first_hour` does what the README says, in new folders, and prints seconds of the clock and of
the processor. Packages come from wherever pip and uv get them on this machine, so that the first two depend
on the network; `--offline` leaves them out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

__all__ = ["Wait", "approval", "clone_to_answer", "document_to_call", "install_to_tool", "measured"]

ROOT: Final = Path(__file__).resolve().parents[1]
_PATIENCE_S: Final = 600
_TOOLS: Final = '''\
from portbook import Toolset

toolset = Toolset("greetings")


@toolset.tool(effect="write")
def greet(name: str) -> str:
    """Say hello."""
    return f"Hello, {name}!"
'''
_SETTINGS: Final = '[python]\ntoolsets = ["my_tools.py"]\n[policy]\napproval = "writes"\n'


@dataclass(frozen=True, slots=True)
class Wait:
    """How long something took."""

    name: str
    seconds: float
    cpu_seconds: float
    """Of the processes that it started, and of theirs."""


def measured(name: str, do: Callable[[Path], None]) -> Wait:
    """Do something in a new folder, and return how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        before, started = _cpu(), time.perf_counter()
        do(Path(folder))
        return Wait(name, time.perf_counter() - started, _cpu() - before)


def clone_to_answer(folder: Path) -> None:
    """Clone, start `scripts/serve`, and get the first answer of a tool over HTTP."""
    clone = folder / "portbook"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    with subprocess.Popen(
        [str(clone / "scripts" / "serve"), "--port", "0"], stderr=subprocess.PIPE, text=True, cwd=folder
    ) as server:
        try:
            assert server.stderr is not None
            url = next(filter(None, (re.search(r"open (http://\S+)/ ", line) for line in server.stderr)))[1]
            body = {"session_id": "s", "tool_id": "docs.search", "args": {"query": "policy"}}
            request = urllib.request.Request(
                f"{url}/execute", json.dumps(body).encode(), {"content-type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
                assert json.load(answer)["error"] is None
        finally:
            server.send_signal(signal.SIGTERM)


def install_to_tool(folder: Path) -> None:
    """Install with pip into a new environment, write a tool, and call it."""
    commands = folder / "environment" / "bin"
    subprocess.run([sys.executable, "-m", "venv", str(commands.parent)], check=True)
    subprocess.run([str(commands / "pip"), "install", "--quiet", str(ROOT)], check=True, timeout=_PATIENCE_S)
    (folder / "my_tools.py").write_text(_TOOLS)
    call = [str(commands / "portbook"), "call", "greet", "name=Ada", "--toolset", "my_tools.py"]
    assert _told(call, folder) == '"Hello, Ada!"\n'


def document_to_call(folder: Path) -> None:
    """Name an OpenAPI document in the settings, and call an operation of its API."""
    api = ThreadingHTTPServer(("127.0.0.1", 0), _Stock)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    try:
        operation = {"operationId": "stock", "responses": {"200": {"description": "What there is."}}}
        document: dict[str, Any] = {
            "openapi": "3.1.0",
            "info": {"title": "stock", "version": "1"},
            "paths": {"/stock": {"get": operation}},
        }
        (folder / "api.json").write_text(json.dumps(document))
        base_url = f'base_url = "http://127.0.0.1:{api.server_port}"\n'
        (folder / "portbook.toml").write_text(f'[http.shop]\nopenapi = "api.json"\n{base_url}')
        assert json.loads(_told([*_portbook(), "call", "shop.stock"], folder)) == {"apples": 3}
    finally:
        api.shutdown()
        api.server_close()


def approval(folder: Path) -> None:
    """Call a tool that needs approval, approve the call, and call again."""
    (folder / "my_tools.py").write_text(_TOOLS)
    (folder / "portbook.toml").write_text(_SETTINGS)
    call = [*_portbook(), "call", "greet", "name=Ada"]
    assert "approval_id" in _told([*call, "--json"], folder, code=3)
    [waiting] = json.loads(_told([*_portbook(), "approvals", "--json"], folder))["approvals"]
    _told([*_portbook(), "approvals", "approve", waiting["approval_id"]], folder)
    assert _told(call, folder) == '"Hello, Ada!"\n'


class _Stock(BaseHTTPRequestHandler):
    """An API with one operation."""

    def do_GET(self) -> None:
        """Answer."""
        body = b'{"apples": 3}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Say nothing."""


def _portbook() -> list[str]:
    return [sys.executable, "-m", "portbook"]


def _told(command: Sequence[str], folder: Path, code: int = 0) -> str:
    """Return what a command prints, as for somebody who has set nothing of Portbook's."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PORTBOOK_")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,  # some are to fail
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--offline", action="store_true", help="Leave out what installs packages.")
    offline = parser.parse_args().offline
    steps: list[tuple[str, Callable[[Path], None]]] = [
        ("OpenAPI document to first call", document_to_call),
        ("a call, its approval, the call again", approval),
    ]
    if not offline:
        steps = [
            ("clone to first answer", clone_to_answer),
            ("install to first own tool", install_to_tool),
            *steps,
        ]
    for name, do in steps:
        wait = measured(name, do)
        print(f"{wait.name:38} {wait.seconds:6.1f} s, {wait.cpu_seconds:5.1f} s of the processor", flush=True)


if __name__ == "__main__":
    main()
