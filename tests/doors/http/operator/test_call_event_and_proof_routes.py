"""What an operator asks over HTTP: recorded calls, figures and proof, as another program would ask."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from portbook.errors import REASONS, Reason
from support.portbook_process import HttpServer, environment, http_server

KEY = "an-operators-key-for-tests"
TOOLS = """
from portbook import Toolset
tools = Toolset("notes")

@tools.tool(name="notes.read", effect="read")
def read(name: str) -> str:
    if name == "none":
        raise ValueError("there is none")
    return name

@tools.tool(name="notes.drop", effect="destructive")
def drop(name: str) -> str:
    return name

@tools.tool(name="notes.keep", effect="write")
def keep(name: str) -> str:
    return name
"""
SETTINGS = """
[python]
toolsets = ["tools.py"]
[docs]
enabled = false
[audit]
arguments = true
[[policy.rules]]
name = "nothing is dropped"
action = "deny"
tools = ["notes.drop"]
[[policy.rules]]
name = "ask before keeping"
action = "ask"
tools = ["notes.keep"]
"""
ROUTES = ["/operator/calls", "/operator/calls/x", "/operator/figures", "/operator/events", "/operator/proof"]


@dataclass
class Office:
    server: HttpServer
    folder: Path

    def get(self, path: str, key: str | None = KEY, **query: str) -> tuple[int, Any]:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        answer = self.server.request(f"{path}?{urlencode(query)}", **headers)
        return answer.status, answer.json

    def calls(self, **query: str) -> list[dict[str, Any]]:
        status, answer = self.get("/operator/calls", **query)
        assert status == 200
        return [call for call in answer["calls"] if call["tool"]]

    def call(self, tool: str, name: str) -> Any:
        body = json.dumps({"session_id": "s", "args": {"name": name}}).encode()
        return self.server.request(f"/tools/{tool}", body, content_type="application/json").json


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    (folder / "tools.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(SETTINGS)
    with http_server(cwd=folder, tools=(), env=environment(PORTBOOK_OPERATOR_KEY=KEY)) as server:
        served = Office(server, folder)
        for tool, name in (("notes.read", "a"), ("notes.drop", "b"), ("notes.read", "none")):
            served.call(tool, name)
        yield served


@pytest.mark.covers("design.operator.key")
@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("key", [None, "wrong"])
def test_without_the_operators_key_nothing_is_told(office: Office, path: str, key: str | None) -> None:
    status, answer = office.get(path, key)
    assert (status, answer["error"]["code"]) == (401, "UNAUTHORIZED")


@pytest.mark.covers("design.operator.calls")
def test_recorded_calls_are_found_by_what_they_are(office: Office) -> None:
    newest = office.calls(tool="notes.*")
    assert [call["tool"] for call in newest] == [
        f"mcp.tool:notes.{name}" for name in ("read", "drop", "read")
    ]
    assert [call["reason"] for call in office.calls(status="refused", tool="*")] == ["POLICY_VIOLATION"]
    denied = office.calls(decision="deny", door="http")[0]
    assert denied["rule"].startswith("nothing is dropped")
    assert office.calls(rule="nothing is dropped") == [denied]
    assert office.calls(status="failed", tool="notes.read")[0]["code"] == 500
    page = office.get("/operator/calls", tool="notes.*", limit="2")[1]
    older = office.calls(tool="notes.*", before=page["next"])
    assert [call["request_id"] for call in page["calls"] + older] == [call["request_id"] for call in newest]


@pytest.mark.covers("design.operator.call")
def test_every_record_of_a_call_is_shown_with_its_place(office: Office) -> None:
    request = office.calls(decision="deny")[0]["request_id"]
    status, found = office.get(f"/operator/calls/{request}")
    (execution,) = found["execution"]
    assert (status, found["outcome"], execution["record"]["arguments"]) == (200, "failure", {"name": "b"})
    assert found["says"] == REASONS[Reason.POLICY_VIOLATION].sentence
    assert execution["record"]["seq"] == execution["line"]
    assert found["envelope_validation"][0]["record"]["requestId"] == request
    assert office.get("/operator/calls/unknown")[1]["error"]["details"]["reason"] == "RECORD_UNKNOWN"


@pytest.mark.covers("design.operator.figures")
def test_figures_are_those_of_the_calls(office: Office) -> None:
    found = office.get("/operator/figures", tool="notes.*", buckets="4")[1]
    assert len(found["buckets"]) == 4
    total = found["total"]
    assert (total["calls"], total["refused"], total["failed"]) == (3, 1, 1)
    assert {each["name"] for each in found["reasons"]} == {"POLICY_VIOLATION", "TOOL_FAILED"}
    month = {"since": (datetime.now(UTC) - timedelta(days=30)).isoformat(), "buckets": "10"}
    (crowded,) = (each for each in office.get("/operator/figures", **month)[1]["buckets"] if each["calls"])
    fitted = office.get("/operator/figures", fit="1", **month)[1]
    assert fitted["total"]["calls"] >= crowded["calls"]
    assert fitted["step_s"] < 3600


@pytest.mark.covers("design.operator.proof")
def test_the_log_is_proved_and_a_changed_record_is_found(office: Office) -> None:
    found = office.get("/operator/proof")[1]
    assert found["whole"] is True
    (path,) = (office.folder / "runs" / "mcp_server" / "execution").glob("*Z*.jsonl")
    kept = path.read_bytes()
    path.write_bytes(kept.replace(b"POLICY_VIOLATION", b"POLICY_VIOLATIOX", 1))
    try:
        broken = office.get("/operator/proof")[1]
    finally:
        path.write_bytes(kept + path.read_bytes()[len(kept) :])
    assert broken["whole"] is False
    assert broken["streams"][0]["broken"]["problem"]


@pytest.mark.covers("design.operator.events")
def test_a_call_is_told_within_a_second_and_so_is_what_waits(office: Office) -> None:
    connection = http.client.HTTPConnection(urlsplit(office.server.url).netloc, timeout=90)
    connection.request("GET", "/operator/events", headers={"authorization": f"Bearer {KEY}"})
    stream = connection.getresponse()
    assert (stream.status, stream.getheader("content-type")) == (200, "text/event-stream")
    assert next_event(stream, "waiting") == {"waiting": 0}
    assert next_event(stream, "upstreams")["servers"] == 0
    told_after_s(office, stream)
    assert next_event(stream, "waiting") == {"waiting": 1}
    # The best of some: a machine that is busy with other tests makes them late, and never early.
    assert any(told_after_s(office, stream) < 1 for _ in range(20))
    connection.close()


def told_after_s(office: Office, stream: http.client.HTTPResponse) -> float:
    """Make a call, and return how long after its answer the stream tells of it."""
    request = office.call("notes.keep", "live")["metadata"]["request_id"]
    ended = time.monotonic()
    while request not in [call["request_id"] for call in next_event(stream, "calls")["calls"]]:
        pass
    return time.monotonic() - ended


def next_event(stream: http.client.HTTPResponse, name: str) -> Any:
    while True:
        line = stream.readline().decode().strip()
        if line == f"event: {name}":
            return json.loads(stream.readline().removeprefix(b"data: "))


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/operator/calls", {"since": "soon"}),
        ("/operator/calls", {"before": "2026-01-01,a.jsonl,last"}),
        ("/operator/calls", {"limit": "0"}),
        ("/operator/calls", {"colour": "red"}),
        ("/operator/figures", {"buckets": "many"}),
        ("/operator/figures", {"fit": "well"}),
        ("/operator/figures", {"since": "2026-02-01", "until": "2026-01-01"}),
    ],
)
def test_a_wrong_question_is_told_where_it_is_wrong(office: Office, path: str, query: dict[str, str]) -> None:
    status, answer = office.get(path, **query)
    (violation,) = answer["error"]["details"]["violations"]
    assert (status, violation["pointer"].strip("/") in query) == (400, True)
