"""Redaction through every door: honest data stays as it is, and a caller can tell what was redacted."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.every_door import ASSET_DOORWAYS, DOORWAYS, ENVELOPE_DOORWAYS, Asked, Doorway, Verdict
from support.in_process_connection import EVERY_REVISION, params
from support.portbook_process import http_server, invoke, run

KNOWN = "hunter2-hunter2"
TOKEN = "ghp_" + "a1" * 18
CARD = 4111111111111111

TOOLS = """
from typing import Any
from portbook import Context, Toolset, ToolError

toolset = Toolset("honest")

@toolset.tool(effect="read")
def orders() -> Any:
    return {"id": 4111111111111111, "sku": "sku_4111111111111111", "card": "4111 1111 1111 1111"}

@toolset.tool(effect="read")
def account() -> Any:
    return {"password": "x"}

@toolset.tool(effect="read")
def plain() -> Any:
    return {"name": "ada"}

@toolset.tool(effect="read")
def fail() -> Any:
    raise ToolError("no access with password=x")

@toolset.tool(effect="read")
def talk(context: Context) -> Any:
    context.progress(1, message="password=x")
    return {"name": "ada"}
"""

SCHEMA: dict[str, Any] = {
    "version": "1.0",
    "type": "object",
    "properties": {"password": {"type": "string"}, "card": {"default": "4111 1111 1111 1111"}},
}
LEAKY: dict[str, Any] = {"version": "1.0", "properties": {"a/b": {"default": [f"use {TOKEN}"]}}}
EXAMPLE = {"$schemaRef": "synesthetic-asset", "password": "x", "Authorization": "Bearer abc123"}

SETTINGS = """
[docs]
enabled = false
[python]
toolsets = ["tools.py"]
[assets]
schemas = "schemas"
examples = "examples"
redact = "{redact}"
[redaction]
secrets = ["THE_SECRET"]
"""


class Served:
    """One folder with tools, a library and settings, and doors to it that are opened when first used."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._open: dict[str, Doorway] = {}

    def ask(self, door: str, asked: Asked) -> Verdict:
        if door not in self._open:
            doorways = {**ASSET_DOORWAYS, **ENVELOPE_DOORWAYS}
            self._open[door] = self._stack.enter_context(doorways[door](self.folder, None))
        return self._open[door](asked)


@contextlib.contextmanager
def serving(folder: Path, redact: str) -> Iterator[Served]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("THE_SECRET", KNOWN)
        (folder / "tools.py").write_text(TOOLS)
        (folder / "portbook.toml").write_text(SETTINGS.format(redact=redact))
        for name, document in (("synesthetic-asset", SCHEMA), ("leaky", LEAKY)):
            (folder / "schemas").mkdir(exist_ok=True)
            (folder / f"schemas/{name}.schema.json").write_text(json.dumps(document))
        (folder / "examples").mkdir()
        (folder / "examples/one.json").write_text(json.dumps(EXAMPLE))
        yield Served(folder, stack)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("redaction"), "refuse") as served:
        yield served


# -- honest data


@pytest.mark.covers("002.redaction.numbers")
@pytest.mark.parametrize("door", DOORWAYS)
def test_a_number_that_looks_like_a_card_stays_and_a_card_in_a_string_goes(served: Served, door: str) -> None:
    found = served.ask(door, Asked("orders")).result
    assert found == {"id": CARD, "sku": f"sku_{CARD}", "card": "[redacted]"}


# -- documents


@pytest.mark.covers("004.assets.unaltered")
@pytest.mark.parametrize("door", ASSET_DOORWAYS)
def test_schemas_examples_and_patches_are_never_altered(served: Served, door: str) -> None:
    assert served.ask(door, Asked("get_schema", {"name": "synesthetic-asset"})).result["schema"] == SCHEMA
    [listed] = served.ask(door, Asked("list_examples")).result["examples"]
    assert served.ask(door, Asked("get_example", {"path": listed["path"]})).result["example"] == EXAMPLE
    changed = {"password": "hunter3", "card": "4111 1111 1111 1111", "token": {"a": 1}}
    patch = served.ask(door, Asked("diff_assets", {"base": {}, "new": changed})).result["patch"]
    assert patch == [{"op": "add", "path": f"/{name}", "value": changed[name]} for name in sorted(changed)]


REFUSED = [
    pytest.param("get_schema", {"name": "leaky"}, "/schema/properties/a~1b/default/0", id="a marked token"),
    pytest.param("diff_assets", {"base": {}, "new": {"a": KNOWN}}, "/patch/0/value", id="a known secret"),
    pytest.param("diff_assets", {"base": {}, "new": {"a": {KNOWN: 1}}}, "/patch/0/value", id="as a name"),
]


@pytest.mark.covers("004.assets.refused")
@pytest.mark.parametrize("door", ASSET_DOORWAYS)
@pytest.mark.parametrize(("tool", "arguments", "pointer"), REFUSED)
def test_a_document_with_a_secret_is_refused_with_its_pointer(
    served: Served, door: str, tool: str, arguments: dict[str, Any], pointer: str
) -> None:
    verdict = served.ask(door, Asked(tool, arguments))
    assert (verdict.reason, verdict.details["pointer"]) == ("NOT_REDACTABLE", pointer)
    assert TOKEN.encode() not in verdict.raw
    assert KNOWN.encode() not in verdict.raw


def test_the_operator_can_give_documents_with_secrets(tmp_path: Path) -> None:
    with serving(tmp_path, "off") as served:
        for door in ASSET_DOORWAYS:
            assert served.ask(door, Asked("get_schema", {"name": "leaky"})).result["schema"] == LEAKY


@pytest.mark.parametrize("redact", ["refuse", "off"])
def test_a_resource_is_the_document_as_it_is_or_refused(tmp_path: Path, redact: str) -> None:
    revision = max(EVERY_REVISION)

    def read(name: str) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read"}
        given = params(revision, uri=f"portbook://schemas/{name}")
        headers = {
            "content_type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp_protocol_version": revision,
            "mcp_method": "resources/read",
            "mcp_name": f"portbook://schemas/{name}",
        }
        return server.request("/mcp", json.dumps({**message, "params": given}).encode(), **headers).json

    with serving(tmp_path, redact), http_server(cwd=tmp_path, tools=()) as server:
        [content] = read("synesthetic-asset")["result"]["contents"]
        assert json.loads(content["text"]) == SCHEMA
        leaky = read("leaky")
    if redact == "off":
        assert json.loads(leaky["result"]["contents"][0]["text"]) == LEAKY
    else:
        data = leaky["error"]["data"]
        assert (leaky["error"]["code"], data["reason"]) == (-31403, "NOT_REDACTABLE")
        assert data["pointer"] == "/properties/a~1b/default/0"


# -- the caller can tell


@pytest.mark.covers("002.redaction.told")
@pytest.mark.parametrize("door", [door for door in DOORWAYS if "envelope" not in door])
def test_a_caller_can_tell_that_its_result_was_redacted(served: Served, door: str) -> None:
    for tool, is_redacted in (("account", True), ("plain", False)):
        answer = json.loads(served.ask(door, Asked(tool)).raw)
        if "MCP" in door:
            told = answer["result"].get("_meta", {}).get("portbook/redacted", False)
        else:
            told = answer["metadata"]["redaction_applied"]
        assert told is is_redacted


@pytest.mark.parametrize("door", ENVELOPE_DOORWAYS)
def test_an_envelope_warns_that_its_result_was_redacted(served: Served, door: str) -> None:
    for tool, codes in (("account", ["ADAPTER.OUTPUT.REDACTED"]), ("plain", [])):
        envelope = served.ask(door, Asked(tool, controls={"capture_provenance": True})).envelope
        assert [warning["code"] for warning in envelope.get("warnings", [])] == codes


@pytest.mark.parametrize("door", DOORWAYS)
def test_a_failure_says_that_its_text_was_redacted(served: Served, door: str) -> None:
    verdict = served.ask(door, Asked("fail"))
    assert (verdict.details["error"], verdict.details["redacted"]) == (
        "no access with password=[redacted]",
        True,
    )


@pytest.mark.parametrize(("tool", "told"), [("account", "true"), ("fail", "true"), ("plain", None)])
def test_over_http_a_header_says_it(served: Served, tool: str, told: str | None) -> None:
    with http_server(cwd=served.folder, tools=()) as server:
        assert server.rpc(invoke(tool, {})).headers.get("portbook-redacted") == told


@pytest.mark.parametrize(("tool", "note"), [("account", "note: secrets were redacted\n"), ("plain", "")])
def test_on_the_command_line_a_note_says_it(served: Served, tool: str, note: str) -> None:
    assert run("call", tool, cwd=served.folder).err.endswith(note)
