"""Who the boundary says it is, and what it offers, in every revision."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from portbook.protocol.message_validation import RESULT
from support.every_revision import VALIDATOR
from support.in_process_connection import (
    EVERY_REVISION,
    HANDSHAKES,
    META,
    STATELESS_META,
    Connection,
    handshake,
)
from support.mcp_http_client import EVERYTHING, run, serving


@pytest.mark.covers("001.mcp.handshake")
@pytest.mark.parametrize("revision", HANDSHAKES)
def test_initialize_agrees_on_the_revision_asked_for(connection: Connection, revision: str) -> None:
    result = connection.request("initialize", handshake(revision))["result"]
    assert result["protocolVersion"] == revision
    assert result["serverInfo"]["name"] == "portbook"
    assert "tools" in result["capabilities"]
    VALIDATOR.validate("initialize" + RESULT, result, revision)


@pytest.mark.covers("001.mcp.stateless")
def test_the_newest_revision_needs_no_handshake(connection: Connection) -> None:
    result = connection.request("server/discover", {"_meta": STATELESS_META})["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["_meta"][META + "serverInfo"]["name"] == "portbook"
    VALIDATOR.validate("server/discover" + RESULT, result)
    assert connection.request("ping", {"_meta": STATELESS_META})["error"]["code"] == -32601


@pytest.mark.covers("design.offers.every-revision")
@pytest.mark.parametrize("revision", EVERY_REVISION)
def test_everything_is_offered_in_every_revision(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open(revision)
            listed = await client.result("resources/list")
            assert {"test://static-text", "test://static-binary"} <= {r["uri"] for r in listed["resources"]}
            templates = (await client.result("resources/templates/list"))["resourceTemplates"]
            assert [template["uriTemplate"] for template in templates] == ["test://template/{id}/data"]
            prompts = {p["name"]: p for p in (await client.result("prompts/list"))["prompts"]}
            assert prompts["test_prompt_with_arguments"]["arguments"] == [
                {"name": "arg1", "required": True},
                {"name": "arg2", "required": True},
            ]
            text = await client.result("resources/read", {"uri": "test://static-text"})
            assert text["contents"][0]["text"].startswith("This is the content")
            assert text["contents"][0]["mimeType"] == "text/plain"
            picture = await client.result("resources/read", {"uri": "test://static-binary"})
            assert base64.b64decode(picture["contents"][0]["blob"]).startswith(b"\x89PNG")
            filled = await client.result("resources/read", {"uri": "test://template/a%20b/data"})
            assert filled["contents"][0]["uri"] == "test://template/a%20b/data"
            assert json.loads(filled["contents"][0]["text"])["id"] == "a b"
            given = {"arg1": "x", "arg2": "y"}
            got = await client.result(
                "prompts/get", {"name": "test_prompt_with_arguments", "arguments": given}
            )
            assert got["messages"][0]["content"]["text"] == "Prompt with arguments: arg1='x', arg2='y'"
            # What a list holds may be kept for a while; what a resource holds, as long as its author says.
            times = [result.get("ttlMs") for result in (listed, text)]
            assert times == ([None, None] if revision in HANDSHAKES else [60_000, 0])

    run(main())
