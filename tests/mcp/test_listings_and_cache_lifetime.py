"""Tools as MCP shows them: listed by revision, in pages, and their results as content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portbook.protocol.message_validation import RESULT
from support.every_revision import VALIDATOR, call, every_revision
from support.in_process_connection import EVERY_REVISION, Connection, params
from support.mcp_http_client import EVERYTHING, run, serving


@every_revision
def test_a_tool_is_listed_and_called(connection: Connection, revision: str) -> None:
    connection.open(revision)
    listed = connection.request("tools/list", params(revision))["result"]
    tools = {tool["name"]: tool for tool in listed["tools"]}
    assert list(tools) == sorted(tools)
    assert tools["echo"]["inputSchema"]["properties"] == {"text": {"type": "string"}}
    assert ("annotations" in tools["echo"]) == (revision != "2024-11-05")
    assert ("outputSchema" in tools["echo"]) == (revision >= "2025-06-18")
    VALIDATOR.validate("tools/list" + RESULT, listed, revision)

    result = connection.request("tools/call", call(revision, "echo", text="grüße"))["result"]
    assert result["content"] == [{"type": "text", "text": "grüße"}]
    expected = {"2025-06-18": {"result": "grüße"}, "2025-11-25": {"result": "grüße"}, "2026-07-28": "grüße"}
    assert result.get("structuredContent") == expected.get(revision)
    assert result.get("resultType") == ("complete" if revision == "2026-07-28" else None)
    VALIDATOR.validate("tools/call" + RESULT, result, revision)


@every_revision
def test_structured_content_satisfies_the_schema_that_was_listed(
    connection: Connection, revision: str
) -> None:
    import jsonschema

    connection.open(revision)
    tools = {
        tool["name"]: tool for tool in connection.request("tools/list", params(revision))["result"]["tools"]
    }
    for name in ("echo", "echo_later", "echo_in_thread"):
        result = connection.request("tools/call", call(revision, name, text="x"))["result"]
        if "outputSchema" in tools[name]:
            jsonschema.Draft202012Validator(tools[name]["outputSchema"]).validate(result["structuredContent"])


@every_revision
def test_an_odd_contract_never_takes_the_whole_list_away(tmp_path: Path, revision: str) -> None:
    bundles = tmp_path / "schemas" / "tools"
    bundles.mkdir(parents=True)
    anything = {"type": ["object", "null"], "properties": {"text": True}}
    contract = {"tool": "echo", "input": anything, "output": {"type": "object", "properties": {"x": True}}}
    (bundles / "echo.json").write_text(json.dumps(contract))
    anchored = {"$defs": {"n": {"$anchor": "n", "type": "string"}}, "$ref": "#n"}
    (bundles / "later.json").write_text(json.dumps({"tool": "echo_later", "input": {}, "output": anchored}))
    connection = Connection(**{"schemas.root": tmp_path / "schemas"}).open(revision)
    listed = connection.request("tools/list", params(revision))["result"]
    VALIDATOR.validate("tools/list" + RESULT, listed, revision)
    assert {"echo", "echo_later", "leaving"} <= {tool["name"] for tool in listed["tools"]}
    result = connection.request("tools/call", call(revision, "echo_later", text="x"))["result"]
    schema = next(tool.get("outputSchema") for tool in listed["tools"] if tool["name"] == "echo_later")
    if schema:
        import jsonschema

        jsonschema.Draft202012Validator(schema).validate(result["structuredContent"])


def test_an_effect_that_nobody_declared_is_not_called_harmless(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(MANY_TOOLS)
    connection = Connection(tools=tmp_path / "tools.py").open("2025-11-25")
    tool = connection.request("tools/list")["result"]["tools"][0]
    assert tool["annotations"] == {"readOnlyHint": False}


MANY_TOOLS = """
from portbook import Toolset
toolset = Toolset("many")
for number in range(250):
    def tool(): ...
    tool.__name__ = f"tool_{number:03}"
    toolset.tool(tool)
"""


@pytest.mark.covers("001.mcp.paging")
@every_revision
def test_a_long_list_comes_in_pages(tmp_path: Path, revision: str) -> None:
    tools = tmp_path / "many.py"
    tools.write_text(MANY_TOOLS)
    connection = Connection(tools=tools).open(revision)
    names: list[str] = []
    sizes: list[int] = []
    cursor: dict[str, object] = {}
    while True:
        page = connection.request("tools/list", params(revision, **cursor))["result"]
        names += [tool["name"] for tool in page["tools"]]
        sizes.append(len(page["tools"]))
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert sizes == [100, 100, 50]
    assert names == [f"tool_{number:03}" for number in range(250)]


@pytest.mark.parametrize("revision", EVERY_REVISION)
def test_content_that_a_revision_does_not_have_becomes_words(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open(revision)
            [block] = (await client.result("tools/call", {"name": "test_audio_content"}))["content"]
            assert block["type"] == ("text" if revision == "2024-11-05" else "audio")
            [block] = (await client.result("tools/call", {"name": "test_image_content"}))["content"]
            assert block["mimeType"] == "image/png"

    run(main())
