"""The envelope specification, requirement by requirement, in its order."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from portbook import CanonicalError, SchemaRegistry
from portbook.app.assemble import assemble
from portbook.audit.memory_sink import MemorySink
from portbook.model import Arrival
from portbook.settings import load_settings
from support.portbook_process import ROOT, SAMPLE_TOOLS, invoke, over_stdio, records

SCHEMAS = ROOT / "codex" / "specs" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

GOOD: dict[str, Any] = json.loads(invoke("docs.search", {"query": "x"}))
GOOD_RESULT: dict[str, Any] = {
    "query": "x",
    "total": 1,
    "hits": [
        {
            "id": "a.md#b",
            "score": 1.5,
            "rank": 1,
            "document": {"title": "B", "snippet": "x", "sourcePath": "a.md"},
        }
    ],
}


def changed(message: dict[str, Any], pointer: str, value: object = ...) -> dict[str, Any]:
    """A copy of `message` with the value at `pointer` replaced, or taken out."""
    result = copy.deepcopy(message)
    *way, last = pointer.strip("/").split("/")
    place: Any = result
    for step in way:
        place = place[int(step) if isinstance(place, list) else step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return result


DEVIATIONS = [
    *(changed(GOOD, f"/{name}") for name in ("jsonrpc", "method", "params")),
    *(changed(GOOD, "/id", wrong) for wrong in (None, True, [], {}, "", 1.5)),
    *(changed(GOOD, "/jsonrpc", wrong) for wrong in ("1.0", 2.0, "2", None)),
    *(changed(GOOD, "/method", wrong) for wrong in ("", 5, None)),
    *(changed(GOOD, "/params", wrong) for wrong in ([], "x", None)),
    changed(GOOD, "/params/tool"),
    changed(GOOD, "/params/input"),
    *(
        changed(GOOD, "/params/tool", wrong)
        for wrong in ("docs.search", "mcp.tool:", "mcp.tool:Docs", "mcp.tool:a b", "mcp.tool:x\n", 5)
    ),
    *(changed(GOOD, "/params/input", wrong) for wrong in ([], "x", None)),
    changed(GOOD, "/extra", 1),
]


@pytest.mark.covers("000.envelope.location")
def test_the_contract_schemas_lie_where_the_specification_says() -> None:
    for name in ("envelope.schema.json", "tool_io.schema.json"):
        assert json.loads((SCHEMAS / name).read_text())["$schema"] == DIALECT
    assert SchemaRegistry().schema_root == SCHEMAS


@pytest.mark.covers("000.envelope.required")
def test_the_envelope_schema_accepts_and_refuses() -> None:
    envelope = SchemaRegistry(schema_root=SCHEMAS).load_envelope()
    accepted = [
        GOOD,
        changed(GOOD, "/id", "abc"),
        changed(GOOD, "/id", -1),
        changed(GOOD, "/id", 2**70),
        changed(GOOD, "/params/_meta", {"anything": 1}),
        changed(GOOD, "/params/context", {"agentId": "a", "more": []}),
        changed(GOOD, "/params/unforeseen", 1),
        changed(GOOD, "/params/tool", "mcp.tool:a_b.c9"),
    ]
    assert [message for message in accepted if not envelope.is_valid(message)] == []
    refused = [*DEVIATIONS, changed(GOOD, "/id"), [], "x", None]
    assert [message for message in refused if envelope.is_valid(message)] == []


@pytest.mark.covers("000.envelope.deviation")
@pytest.mark.parametrize("message", DEVIATIONS, ids=lambda message: json.dumps(message)[17:80])
def test_every_deviation_of_the_envelope_is_invalid_input(message: dict[str, Any], tmp_path: Path) -> None:
    sink = MemorySink()
    boundary = assemble(load_settings(None, {}, {}, tmp_path), is_exposed=False, sink=sink).boundary
    answer = asyncio.run(boundary.answer(json.dumps(message).encode(), Arrival("test", "test")))
    assert answer.body is not None
    error = json.loads(answer.body)["error"]
    assert (error["code"], error["message"], answer.status) == (-32602, "Invalid params", 400)
    assert error["data"]["canonical_code"] == "INVALID_INPUT"
    assert error["data"]["violations"]
    assert [record["status"] for record in sink.records] == ["error"]


@pytest.mark.covers("000.tool-io.location")
def test_the_shipped_bundles_satisfy_the_bundle_schema() -> None:
    registry = SchemaRegistry(SCHEMAS)
    assert set(registry.bundles()) == {
        json.loads(path.read_text())["tool"] for path in SCHEMAS.glob("tools/*.json")
    }
    assert "docs.search" in registry.bundles()


@pytest.mark.covers("000.tool-io.registry")
def test_load_tool_io_returns_both_validators_for_either_name() -> None:
    registry = SchemaRegistry(SCHEMAS)
    io = registry.load_tool_io("docs.search")
    assert registry.load_tool_io("mcp.tool:docs.search") is io
    assert (io.input, io.output) == (io.input_validator, io.output_validator)
    io.input.validate({"query": "x"})
    io.output.validate(GOOD_RESULT)
    with pytest.raises(KeyError):
        registry.load_tool_io("mcp.tool:no.such")


@pytest.mark.covers("000.tool-io.cached")
def test_one_schema_from_two_files_is_one_validator(tmp_path: Path) -> None:
    for root, order in (("a", False), ("b", True)):
        folder = tmp_path / root / "tools"
        folder.mkdir(parents=True)
        bundle = {"tool": "t", "input": {"type": "object", "required": ["z"]}, "output": {"type": "string"}}
        (folder / "t.json").write_text(json.dumps(bundle, sort_keys=order))
    first, second = (SchemaRegistry(tmp_path / root).load_tool_io("t") for root in ("a", "b"))
    assert first.input is second.input
    assert first.output is second.output


@pytest.mark.covers("000.tool-io.input")
def test_the_input_validator_refuses_a_missing_query() -> None:
    validator = SchemaRegistry(SCHEMAS).load_tool_io("docs.search").input
    with pytest.raises(ValueError, match='missing property "query"') as raised:
        validator.validate({"topK": 3})
    (finding,) = raised.value.findings  # type: ignore[attr-defined]
    assert (finding.pointer, finding.keyword, finding.schema_pointer) == ("", "required", "/required")


@pytest.mark.covers("000.tool-io.output")
@pytest.mark.parametrize(
    "pointer",
    [
        "/query", "/total", "/hits", "/hits/0/id", "/hits/0/score", "/hits/0/rank", "/hits/0/document",
        "/hits/0/document/title", "/hits/0/document/snippet", "/hits/0/document/sourcePath",
    ],
)  # fmt: skip
def test_the_output_validator_guards_every_hit(pointer: str) -> None:
    validator = SchemaRegistry(SCHEMAS).load_tool_io("docs.search").output
    assert validator.is_valid(GOOD_RESULT)
    assert not validator.is_valid(changed(GOOD_RESULT, pointer))
    assert not validator.is_valid(changed(GOOD_RESULT, pointer, ["of another type"]))


TABLE = {
    "INVALID_INPUT": (400, -32602, "Invalid params"),
    "INVALID_OUTPUT": (502, -32002, "Invalid tool output"),
    "NOT_FOUND": (404, -32004, "Resource not found"),
    "UNAUTHORIZED": (401, -32001, "Unauthorized"),
    "INTERNAL_ERROR": (500, -32603, "Internal error"),
}


@pytest.mark.covers("000.errors.table")
def test_the_five_codes_are_those_of_the_table() -> None:
    found = {
        code: (
            CanonicalError.to_http_status(code),
            CanonicalError.to_jsonrpc_error(code)["code"],
            CanonicalError.to_jsonrpc_error(code)["message"],
        )
        for code in CanonicalError.codes()
    }
    assert found == TABLE


@pytest.mark.covers("000.errors.to-jsonrpc")
def test_an_error_object_is_exactly_code_message_and_canonical_code() -> None:
    for code, (_, number, message) in TABLE.items():
        expected = {"code": number, "message": message, "data": {"canonical_code": code}}
        error = CanonicalError.to_jsonrpc_error(code)
        assert error == expected
        error["data"]["canonical_code"] = "changed"
        assert CanonicalError.to_jsonrpc_error(code) == expected
    with pytest.raises(KeyError):
        CanonicalError.to_jsonrpc_error("NO_SUCH_CODE")


@pytest.mark.covers("000.log.location")
def test_records_lie_under_runs_with_a_relative_link_to_the_latest(tmp_path: Path) -> None:
    over_stdio(invoke("echo", {"text": "one"}), cwd=tmp_path)
    over_stdio(invoke("echo", {"text": "two"}), invoke("echo", {"text": "three"}), cwd=tmp_path)
    folder = tmp_path / "runs" / "mcp_server" / "envelope_validation"
    link = folder / "envelope_validation.latest.jsonl"
    runs = sorted(path for path in folder.glob("*.jsonl") if not path.is_symlink())
    assert [len(path.read_text().splitlines()) for path in runs] == [1, 2]
    assert link.readlink() == Path(runs[1].name)
    assert len(records(tmp_path / "runs")) == 2
    assert SAMPLE_TOOLS.name not in link.read_text()
