"""How a server introduces itself to MCP clients, as each revision has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.version import __version__
from support.in_process_connection import EVERY_REVISION, META, handshake
from support.mcp_http_client import Client, run, serving

NAMED = {
    "server.name": "shop",
    "server.title": "The shop",
    "server.version": "7.1",
    "server.instructions": "Refund with care.\nAsk first.",
}


async def introduced(client: Client, revision: str) -> tuple[Any, Any]:
    """Return what a client of a revision is told of the server, and its instructions."""
    if revision == "2026-07-28":
        client.revision = revision
        found = await client.result("server/discover")
        return found["_meta"][META + "serverInfo"], found.get("instructions")
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake(revision)}
    found = (await client.send(hello)).json["result"]
    return found["serverInfo"], found.get("instructions")


@pytest.mark.parametrize("revision", EVERY_REVISION)
def test_the_server_has_the_name_title_version_and_instructions_of_the_settings(
    tmp_path: Path, revision: str
) -> None:
    async def main() -> None:
        async with serving(tmp_path, **NAMED) as client:
            server, instructions = await introduced(client, revision)
            title = {} if revision < "2025-06-18" else {"title": "The shop"}
            assert server == {"name": "shop", "version": "7.1", **title}
            assert instructions == "Refund with care.\nAsk first."

    run(main())


@pytest.mark.parametrize("revision", EVERY_REVISION)
def test_without_settings_it_is_portbook_and_says_no_more(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            assert await introduced(client, revision) == ({"name": "portbook", "version": __version__}, None)

    run(main())
