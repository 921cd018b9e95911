"""An error that a tool means: the same code, data and message at every door, and one line for operators."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.every_door import DOORWAYS, ENVELOPE_DOORWAYS, Asked, Doorway
from support.portbook_process import http_server, invoke, records, run

TOOLS = """
import datetime
import sys
from portbook import ToolError, Toolset

toolset = Toolset("errors")

@toolset.tool(effect="read")
def full() -> int:
    raise ToolError(
        "No room at password=hunter2hunter2",
        code="ROOM.FULL",
        data={"rooms": [1, 2], "password": "hunter2hunter2", "left": 0},
        retryable=True,
    )

@toolset.tool(effect="read")
async def plain() -> int:
    raise ToolError("No such room.")

class QuotaError(Exception):
    code = "QUOTA.EXCEEDED"

@toolset.tool(effect="read")
def quota() -> int:
    raise QuotaError("canary-in-an-exception")

class Talkative(Exception):
    code = "canary in a sentence"

@toolset.tool(effect="read", inline=True)
def crash() -> int:
    raise Talkative("canary-in-an-exception")

@toolset.tool(effect="read")
def odd() -> int:
    raise ToolError("canary-in-an-exception", code="ODD", data={"when": datetime.date(2026, 1, 1)})

@toolset.tool(effect="read", inline=True)
def leaving() -> int:
    sys.exit("canary-in-an-exception")
"""

SETTINGS = '[python]\ntoolsets = ["tools.py"]\n\n[docs]\nenabled = false\n'

# Which line of TOOLS each tool raises in.
LINES = {
    tool: next(at for at, line in enumerate(TOOLS.splitlines(), 1) if at > start and word in line)
    for tool, word in {
        "full": "raise ToolError",
        "plain": "raise ToolError",
        "quota": "raise QuotaError",
        "crash": "raise Talkative",
        "odd": "raise ToolError",
    }.items()
    for start in [next(at for at, line in enumerate(TOOLS.splitlines(), 1) if f"def {tool}()" in line)]
}


def make(folder: Path) -> Path:
    (folder / "tools.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(SETTINGS)
    return folder


@pytest.fixture(scope="module", params=DOORWAYS)
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doorway]:
    folder = make(tmp_path_factory.mktemp("errors"))
    with contextlib.ExitStack() as opened:
        yield opened.enter_context(DOORWAYS[request.param](folder, None))


def stated(body: bytes) -> dict[str, Any]:
    """What a program reads of a tool's own error, in whichever dialect."""
    answer = json.loads(body)
    if "status" in answer:
        error = answer["error"]
        return {**error["details"], "error": error["message"], "retryable": error["retryable"]}
    if "error" in answer:
        return {"retryable": False, **answer["error"]["data"]}
    result = answer["result"]
    assert result["isError"] is True
    text = result["content"][0]["text"]
    return {**result["_meta"]["portbook/refusal"], **result["_meta"]["portbook/error"], "error": text}


@pytest.mark.covers("003.failure.own-codes-everywhere")
def test_a_tools_own_error_has_its_code_and_data_at_every_door(door: Doorway) -> None:
    verdict = door(Asked("full"))
    assert verdict.reason == "TOOL_ERROR"
    own = stated(verdict.raw)
    assert (own["code"], own["retryable"]) == ("ROOM.FULL", True)
    assert own["data"] == {"rooms": [1, 2], "password": "[redacted]", "left": 0}
    assert own["error"] == "No room at password=[redacted]"
    assert b"hunter2" not in verdict.raw


def test_an_error_without_a_code_is_an_error_of_the_tool_too(door: Doorway) -> None:
    verdict = door(Asked("plain"))
    own = stated(verdict.raw)
    assert (verdict.reason, own["error"], own["retryable"]) == ("TOOL_ERROR", "No such room.", False)
    assert (own.get("code"), own.get("data")) == (None, None)


@pytest.mark.covers("003.failure.exception-codes")
def test_the_code_of_any_exception_is_told_and_its_text_is_not(door: Doorway) -> None:
    verdict = door(Asked("quota"))
    assert (verdict.reason, stated(verdict.raw)["code"]) == ("TOOL_ERROR", "QUOTA.EXCEEDED")
    assert b"canary" not in verdict.raw


@pytest.mark.parametrize("tool", ["crash", "leaving"])
def test_a_crash_stays_a_crash(door: Doorway, tool: str) -> None:
    verdict = door(Asked(tool))
    assert verdict.reason in ("TOOL_FAILED", "INTERNAL_ERROR")  # an envelope has the canonical code alone
    assert b"canary" not in verdict.raw


def test_data_that_is_not_json_fails_and_says_so(door: Doorway) -> None:
    verdict = door(Asked("odd"))
    assert verdict.reason in ("TOOL_FAILED", "INTERNAL_ERROR")
    assert verdict.details["error"] == "The tool failed: the data of its error is not JSON."
    assert b"canary" not in verdict.raw


@pytest.mark.covers("003.failure.own-codes-in-envelopes")
@pytest.mark.parametrize("name", ["POST /execute", "POST /rpc, request", "STDIO, MCP 2025-11-25"])
def test_the_entry_in_an_envelope_has_the_tools_own_code_and_message(name: str, tmp_path: Path) -> None:
    with ENVELOPE_DOORWAYS[name](make(tmp_path), None) as door:
        envelope = door(Asked("full", controls={"capture_provenance": True})).envelope
        assert envelope["errors"] == [
            {
                "code": "ROOM.FULL",
                "message": "No room at password=[redacted]",
                "details": {
                    "password": "[redacted]",
                    "left": 0,
                    "reason": "TOOL_ERROR",
                    "canonical_code": "INTERNAL_ERROR",
                    "executed": True,
                },
                "retryable": True,
            }
        ]
        [quota] = door(Asked("quota", controls={"capture_provenance": True})).envelope["errors"]
        assert quota["code"] == "QUOTA.EXCEEDED"


def test_the_http_status_is_422_and_the_exit_code_1(tmp_path: Path) -> None:
    make(tmp_path)
    with http_server(cwd=tmp_path, tools=()) as server:
        body = {"session_id": "s", "tool_id": "full", "args": {}}
        rest = server.request("/execute", json.dumps(body).encode(), content_type="application/json")
        assert (rest.status, rest.json["error"]["code"]) == (422, "TOOL_ERROR")
        assert rest.json["metadata"]["redaction_applied"] is True
        rpc = server.rpc(invoke("full", {}))
        assert (rpc.status, rpc.json["error"]["code"]) == (422, -32603)
        assert rpc.json["error"]["data"]["canonical_code"] == "INTERNAL_ERROR"
    finished = run("call", "full", "--json", cwd=tmp_path)
    assert (finished.code, json.loads(finished.out)["error"]["code"]) == (1, "ROOM.FULL")
    spoken = run("call", "full", cwd=tmp_path)
    assert "  error: No room at" in spoken.err
    assert '  data: {"rooms": [1, 2], ' in spoken.err


LINE = r"portbook: tool (\w+) raised (\w+) at (\S+):(\d+) \(request ([0-9a-f-]+)\)"


def reported(err: str) -> list[tuple[str, ...]]:
    return re.findall(LINE, err)


def test_every_tool_that_raised_has_one_line_on_standard_error(tmp_path: Path) -> None:
    make(tmp_path)
    tools = ["full", "plain", "quota", "crash", "odd"]
    types = ["ToolError", "ToolError", "QuotaError", "Talkative", "ToolError"]
    frames = b"".join(invoke(tool, {}) + b"\n" for tool in tools)
    finished = run("serve", "--stdio", "--log-dir", "runs", stdin=frames, cwd=tmp_path)
    ids = [record["requestId"] for record in records(tmp_path / "runs")]
    file = str(tmp_path / "tools.py")
    assert reported(finished.err) == [
        (tool, kind, file, str(LINES[tool]), request)
        for tool, kind, request in zip(tools, types, ids, strict=True)
    ]
    assert "Traceback" not in finished.err
    assert "canary" not in finished.err
    with (tmp_path / "err").open("wb") as err, http_server(cwd=tmp_path, tools=(), stderr=err) as server:
        server.rpc(invoke("quota", {}))
    assert [line[:2] for line in reported((tmp_path / "err").read_text())] == [("quota", "QuotaError")]
    assert [line[:2] for line in reported(run("call", "quota", cwd=tmp_path).err)] == [
        ("quota", "QuotaError")
    ]


def test_debug_shows_the_frames_of_the_tool_and_none_of_ours(tmp_path: Path) -> None:
    make(tmp_path)
    finished = run("serve", "--stdio", "--debug", stdin=invoke("quota", {}) + b"\n", cwd=tmp_path)
    _, _, shown = finished.err.partition("Traceback (most recent call last):\n")
    assert shown.startswith(f'  File "{tmp_path}/tools.py", line {LINES["quota"]}, in quota\n')
    assert shown.rstrip().endswith("QuotaError: canary-in-an-exception")
    assert "portbook/" not in shown
    meant = run("serve", "--stdio", "--debug", stdin=invoke("full", {}) + b"\n", cwd=tmp_path)
    assert reported(meant.err)
    assert "Traceback" not in meant.err


def test_standard_error_that_is_never_read_does_not_stop_the_server(tmp_path: Path) -> None:
    make(tmp_path)
    with http_server(cwd=tmp_path, tools=()) as server:  # its standard error is a pipe that is not read
        for _ in range(1200):
            assert server.rpc(invoke("crash", {})).status == 500
