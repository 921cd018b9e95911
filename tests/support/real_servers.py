"""Servers from the registries, as people start them: how each is started, and what is asked of it."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support import sdks
from support.portbook_process import child, environment

# What a server says of a moment, a folder or a random number is not the same twice.
_TIME = re.compile(r"\d\d?:\d\d:\d\d [AP]M|\w{3} \w{3} \d\d \d{4} \d\d:\d\d:\d\d GMT\S* \([^)]*\)")


def commands(folder: Path) -> dict[str, list[str]]:
    """The commands of all servers; the one for files may use `folder` alone."""
    modules = sdks.node_packages()

    def of_npm(name: str, *arguments: str) -> list[str]:
        script = modules.path(f"@modelcontextprotocol/server-{name}", "dist", "index.js")
        return [modules.node.node, str(script), *arguments]

    return {
        "everything": of_npm("everything"),
        "filesystem": of_npm("filesystem", str(folder)),
        "fastmcp": [str(sdks.fastmcp()), str(sdks.HERE / "fastmcp_server.py")],
    }


@contextlib.contextmanager
def over_http(folder: Path) -> Iterator[dict[str, str]]:
    """The addresses of those that can serve HTTP, while they do."""
    given = commands(folder)
    ports = {"everything": _free_port(), "fastmcp": _free_port()}
    started = {
        "everything": [*given["everything"], "streamableHttp"],
        "fastmcp": [*given["fastmcp"], str(ports["fastmcp"])],
    }
    with contextlib.ExitStack() as stack:
        for name, command in started.items():
            stack.enter_context(
                child(
                    command,
                    cwd=folder,
                    env=environment(PORT=str(ports[name])),
                    stdin=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                )
            )
        for port in ports.values():
            _wait_for(port)
        yield {name: f"http://localhost:{port}/mcp" for name, port in ports.items()}


def orders(folder: Path) -> dict[str, dict[str, list[Any]]]:
    """By server: every tool that is called, and what is read, got and completed."""
    return {"everything": _EVERYTHING, "filesystem": _of_files(folder), "fastmcp": _FASTMCP}


def comparable(value: Any, folder: Path) -> Any:
    """What was seen, without what differs from moment to moment and from folder to folder."""
    if isinstance(value, dict):
        kept = {key: comparable(each, folder) for key, each in value.items()}
        if isinstance(kept.get("blob"), str):
            kept["blob"] = comparable(b64decode(kept["blob"]).decode("latin-1"), folder)
        return kept
    if isinstance(value, list):
        return [comparable(each, folder) for each in value]
    return _TIME.sub("(time)", value.replace(str(folder), "(folder)")) if isinstance(value, str) else value


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def _wait_for(port: int) -> None:
    until = time.monotonic() + 100
    while True:
        try:
            socket.create_connection(("localhost", port), 1).close()
        except OSError:
            assert time.monotonic() < until, f"nothing listens at {port}"
            time.sleep(0.05)
        else:
            return


def _call(tool: str, content: dict[str, Any] | None = None, /, **arguments: Any) -> dict[str, Any]:
    named = json.dumps([tool, arguments])  # a tool may be called twice
    return {"name": named, "tool": tool, "arguments": arguments, "content": content or {}}


def _prompt(name: str, /, **arguments: str) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def _completion(reference: dict[str, str], name: str, value: str, /, **context: str) -> dict[str, Any]:
    typed = {"name": name, "ref": reference, "argument": {"name": name, "value": value}}
    return {**typed, "context": context} if context else typed


_TEAM = {"type": "ref/prompt", "name": "completable-prompt"}
_TEXT = {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}
_LINK = {"url": "https://example.com/sign", "message": "Sign", "elicitationId": "e1"}
_DATA = "data:text/plain,hello"

_EVERYTHING = {
    "call": [
        _call("echo", message='grüße 👋 "\u2028"'),
        _call("echo", message=5),
        _call("get-annotated-message", messageType="error", includeImage=True),
        _call("get-env"),
        _call("get-resource-links", count=3),
        _call("get-resource-reference", resourceType="Blob", resourceId=1),
        _call("get-structured-content", location="Chicago"),
        _call("get-sum", a=2, b=0.5),
        _call("get-tiny-image"),
        _call("gzip-file-as-resource", name="x.gz", data=_DATA, outputType="resource"),
        _call("toggle-simulated-logging"),
        _call("toggle-subscriber-updates"),
        _call("trigger-long-running-operation", duration=0.3, steps=3),
        _call("get-roots-list"),
        _call("trigger-elicitation-request", {"name": "Ada", "check": True, "integer": 7}),
        _call("trigger-url-elicitation", **_LINK),
        _call("trigger-sampling-request", prompt="The capital?", maxTokens=10),
        _call("simulate-research-query", topic="ants"),
    ],
    "read": [
        "demo://resource/dynamic/text/1",
        "demo://resource/dynamic/blob/2",
        "demo://resource/static/document/architecture.md",
    ],
    "get": [
        _prompt("simple-prompt"),
        _prompt("args-prompt", city="Paris"),
        _prompt("completable-prompt", department="Sales", name="Eve"),
        _prompt("resource-prompt", resourceType="Text", resourceId="1"),
    ],
    "complete": [_completion(_TEAM, "department", "S"), _completion(_TEXT, "resourceId", "1")],
}

_FASTMCP = {
    "call": [
        _call("price", order={"item": "tea", "amount": 3}),
        _call("price", order={"item": "tea", "amount": 300}),
        _call("count", items=["a", "b"]),
        _call("invite", address="ada@example.com"),
        _call("sold_out"),
        _call("deliver"),
        _call("sign", {"name": "Ada"}),
    ],
    "read": ["shop://opening-hours", "shop://logo", "shop://items/tea/stock"],
    "get": [_prompt("ask_for", item="tea", politely="false")],
    "complete": [],
}


def _of_files(folder: Path) -> dict[str, list[Any]]:
    a, b, c, inner = (str(folder / name) for name in ("a.txt", "b.txt", "c.txt", "inner"))
    edits = [{"oldText": "one", "newText": "two"}]
    return {
        "call": [
            _call("write_file", path=a, content="one\n"),
            _call("write_file", path=b, content="b"),
            _call("edit_file", path=a, edits=edits, dryRun=True),
            _call("create_directory", path=inner),
            _call("move_file", source=b, destination=c),
            _call("move_file", source=c, destination=b),
            _call("read_file", path=a),
            _call("read_text_file", path=a, head=1),
            _call("read_text_file", path="/etc/passwd"),
            _call("read_media_file", path=a),
            _call("read_multiple_files", paths=[a, b]),
            _call("list_directory", path=str(folder)),
            _call("list_directory_with_sizes", path=str(folder)),
            _call("directory_tree", path=str(folder)),
            _call("search_files", path=str(folder), pattern="*.txt"),
            _call("get_file_info", path=inner),
            _call("list_allowed_directories"),
        ],
        "read": [],
        "get": [],
        "complete": [],
    }
