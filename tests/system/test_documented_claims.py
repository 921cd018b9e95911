"""Sentences of the docs that a reader would check, checked against the product."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from portbook.errors import REASONS, Reason
from support import sdks
from support.in_process_connection import EVERY_REVISION, HANDSHAKES, handshake
from support.portbook_process import ROOT, SAMPLE_TOOLS, http_server, invoke, over_stdio, records, run

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
SIZES = ROOT / "docs/reference/envelope.md"
IDS = ROOT / "docs/reference/records.md"
MCP = ROOT / "docs/reference/mcp.md"
ASSETS = ROOT / "docs/reference/assets.md"
OVERLAYS = ROOT / "docs/how-to/override-the-official-schema.md"


def text_of(page: Path) -> str:
    return " ".join(page.read_text("utf-8").split())


def test_a_claim_about_the_conformance_suite_names_the_version_that_is_run() -> None:
    version = sdks.CONFORMANCE
    claims = {
        page.name: re.findall(r"official conformance suite(?: (\S+\d))?", text_of(page)) for page in PAGES
    }
    claims = {name: found for name, found in claims.items() if found}
    assert claims.keys() >= {"README.md", "CHANGELOG.md", "mcp.md"}
    assert {version for found in claims.values() for version in found} == {version}


def test_the_docs_count_the_corrections_of_the_embedded_schemas(tmp_path: Path) -> None:
    shown = [json.loads(run("schema", "show", each, "--json", cwd=tmp_path).out) for each in EVERY_REVISION]
    corrected = [len(each["overlays"]) for each in shown if each["overlays"]]
    assert (sum(corrected), len(corrected)) == (4, 3)
    assert "four in three revisions" in text_of(OVERLAYS)


def error_rows() -> list[tuple[str, str]]:
    """Reasons and answers in the table of errors over MCP."""
    [table] = re.findall(r"^## Errors$(.*?)(?=^## )", MCP.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    cells = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("|")][2:]
    return [(reasons, answer) for _, reasons, answer in cells]


@pytest.mark.parametrize(("reasons", "answer"), error_rows(), ids=lambda cell: cell.strip()[:60])
def test_the_errors_of_mcp_have_the_codes_of_the_product(reasons: str, answer: str) -> None:
    said = {int(code) for code in re.findall(r"-3\d{4}", answer)}
    # A tool's failure is a result, and a cancelled request has no answer.
    if said or not ("isError" in answer or answer.strip("| ") == "none"):
        for name in re.findall(r"`([A-Z_]+)`", reasons):
            assert REASONS[Reason(name)].mcp.code in said


def test_no_page_says_that_schemas_examples_or_patches_are_redacted(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    schema = {"properties": {"password": {"default": "4111 1111 1111 1111"}}}
    (tmp_path / "schemas/tone.schema.json").write_text(json.dumps(schema))
    (tmp_path / "portbook.toml").write_text('[assets]\nschemas = "schemas"\n')
    given = json.loads(run("call", "get_schema", "name=tone", cwd=tmp_path).out)
    assert given["schema"] == schema
    about = re.compile(
        r"redact.*\bschemas?\b.*\bexamples?\b|\bschemas?\b.*\bexamples?\b.*redact", re.IGNORECASE
    )
    sentences = [
        sentence
        for page in (ASSETS, *sorted((ROOT / "docs/how-to").glob("*.md")))
        for sentence in re.split(r"(?<=\.)\s", text_of(page))
        if about.search(sentence) and "`" not in sentence
    ]
    assert [sentence for sentence in sentences if "never" in sentence]
    assert [sentence for sentence in sentences if "never" not in sentence] == []


def _initialize(revision: str) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": handshake(revision)}
    ).encode()


@pytest.mark.parametrize("revision", sorted(HANDSHAKES))
def test_an_oversize_line_is_an_error_once_the_connection_has_spoken_mcp(
    revision: str, tmp_path: Path
) -> None:
    oversize = b'"' + b"x" * 1_048_576 + b'"'
    first, _, error, pong = over_stdio(
        oversize, _initialize(revision), oversize, b'{"jsonrpc":"2.0","id":2,"method":"ping"}', cwd=tmp_path
    ).answers
    [shown] = re.findall(r'^\{"jsonrpc".*payload_too_large.*\}$', SIZES.read_text("utf-8"), re.MULTILINE)
    assert first == json.loads(shown)
    assert (error["error"]["code"], error["error"]["data"]["reason"]) == (-32600, "FRAME_TOO_LARGE")
    assert error.get("id") is None
    assert pong == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert "the answer is a JSON-RPC error instead: `-32600` with the reason `FRAME_TOO_LARGE`" in text_of(
        SIZES
    )


def _ids(record: dict[str, Any]) -> tuple[str, ...]:
    return tuple(record[name] for name in ("requestId", "traceId", "spanId"))


def test_deterministic_ids_are_those_of_a_message_in_its_dialect(tmp_path: Path) -> None:
    frame = invoke("echo", {"text": "hi"})
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "hi"}},
    }
    options = ("--deterministic-ids", "--log-dir", "stdio")
    over_stdio(
        frame, frame, _initialize("2025-11-25"), json.dumps(call).encode(), cwd=tmp_path, options=options
    )
    first, again, _, by_mcp = records(tmp_path / "stdio")
    with http_server(
        "--deterministic-ids", "--log-dir", "http", cwd=tmp_path, tools=(str(SAMPLE_TOOLS),)
    ) as server:
        server.rpc(frame)
        body = {"tool_id": "echo", "args": {"text": "hi"}, "session_id": "s"}
        server.request("/execute", json.dumps(body).encode(), content_type="application/json")
    by_http, by_rest = records(tmp_path / "http")
    assert _ids(first) == _ids(again) == _ids(by_http)
    assert len({_ids(first), _ids(by_mcp), _ids(by_rest)}) == 3
    assert "the same call is a different message, with ids of its own" in text_of(IDS)
