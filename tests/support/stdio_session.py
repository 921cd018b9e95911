"""A client of `portbook serve --stdio` in the handshake era that keeps every byte it was sent."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.portbook_process import PORTBOOK, child


class StdioSession:
    """One client and its Portbook."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._count = 0
        self.received = b""

    def request(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Return the answer to a request, past everything else that is sent before it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params or {}}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        while True:
            line = self._process.stdout.readline()
            assert line, "Portbook has ended"
            self.received += line
            answer = json.loads(line)
            if answer.get("id") == self._count:
                return answer

    def tools(self) -> dict[str, Any]:
        """Return the tools that are listed, by name."""
        listed = self.request("tools/list")["result"]["tools"]
        return {tool["name"]: tool for tool in listed}

    def call(self, tool: str, arguments: dict[str, Any] | None = None) -> str:
        """Return the reason for which a call was refused, or the text of its result."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments or {}})
        if "error" in answer:
            return str(answer["error"]["data"]["reason"])
        result = answer["result"]
        refusal = result.get("_meta", {}).get("portbook/refusal")
        return str(refusal["reason"] if refusal else result["content"][0]["text"])

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Ask again until it is so: a server that changes says so in its own time."""
        until = time.monotonic() + 30
        while not is_so():
            assert time.monotonic() < until, "it never came"
            time.sleep(0.05)


@contextlib.contextmanager
def stdio_session(folder: Path, *options: str) -> Iterator[StdioSession]:
    """Serve what the settings in a folder name, to one client."""
    with (
        (folder / "stderr").open("ab") as stderr,
        child(
            [*PORTBOOK, "serve", "--stdio", *options],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process,
    ):
        session = StdioSession(process)
        about = {"name": "test", "version": "1"}
        session.request(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
        )
        yield session
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)
