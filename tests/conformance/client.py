"""The client that the official suite starts: a Portbook in front of the suite's server, and all of it used.

`python client.py PORTBOOK REVISION URL`: the program, and the revision that it is spoken to in. For each
scenario that came to its end it leaves an empty file in its folder, `NAME.completed`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.mcp_peer import Peer, peer_of, table  # noqa: E402 - found beside the tests

AT_ONCE = 3  # the suite starts all clients at once; they spend most of their time waiting

SAMPLES: dict[str, Any] = {
    "string": "a text",
    "number": 2.5,
    "integer": 3,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


def arguments_of(tool: dict[str, Any], tools: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a tool accepts: of each required one, any value of its type."""
    if tool["name"] == "json_schema_echo":  # it wants the schema of the other tool, as it was listed
        return {"schema": tools["json_schema_2020_12_tool"]["inputSchema"]}
    schema = tool["inputSchema"]
    properties = schema.get("properties", {})
    return {name: SAMPLES[properties[name].get("type", "string")] for name in schema.get("required", [])}


def use_tools(peer: Peer) -> None:
    tools = {tool["name"]: tool for tool in peer.answer("tools/list")["result"]["tools"]}
    wanted = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls")
    for call in wanted or ({"name": name} for name in tools):
        tool = tools.get(call["name"])
        if tool is not None:
            given = call.get("arguments") or arguments_of(tool, tools)
            # A null where the schema has none is left out, as by people who leave a field empty.
            peer.call(tool["name"], {name: each for name, each in given.items() if each is not None})


def use_resources(peer: Peer) -> None:
    for resource in peer.answer("resources/list")["result"]["resources"]:
        peer.answer("resources/read", {"uri": resource["uri"]})


def use_prompts(peer: Peer) -> None:
    for prompt in peer.answer("prompts/list")["result"]["prompts"]:
        peer.answer("prompts/get", {"name": prompt["name"]})


def load_skills(peer: Peer) -> None:
    """Load each skill as a host does: its own file first, then the others; none after one that is refused."""
    for skill in peer.answer("skills/list")["result"]["skills"]:
        for file in skill["resources"]:
            if "error" in peer.answer("resources/read", {"uri": file["uri"]}):
                break


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Wait until few enough others run."""
    with Path(f"turn-{os.getpid() % AT_ONCE}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(portbook: str, revision: str, url: str) -> None:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    settings = table("suite", f"url = {json.dumps(url)}", "prefix = false", "timeout_ms = 10000")
    settings += 'may_ask = ["elicitation", "sampling", "roots"]\n[docs]\nenabled = false\n'
    with (
        turn(),
        tempfile.TemporaryDirectory() as folder,
        peer_of(Path(folder), settings, revision, portbook=[portbook]) as peer,
    ):
        if scenario == "sep-2640-client-no-prefetch":
            assert peer.answer("skills/list")["result"]["skills"]
        elif scenario.startswith("sep-2640"):
            load_skills(peer)
        else:
            use_tools(peer)
            use_resources(peer)
            use_prompts(peer)
    Path(f"{scenario}.completed").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
