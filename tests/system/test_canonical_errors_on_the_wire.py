"""The same calls through both doors: exact bytes out, and equal records behind them."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deepdiff import DeepDiff

from support.portbook_process import TESTS, HttpServer, environment, http_server, invoke, over_stdio, records

FIXTURE = TESTS / "fixtures" / "mcp" / "envelope_validation_golden.jsonl"
KEY = "a key for the tests"

# What the envelope specification lets differ between two transports, and nothing else.
VOLATILE = ("ts", "traceId", "spanId", "requestId", "durationMs", "transport", "route")
EXCLUDED = [f"root['{name}']" for name in VOLATILE]


@dataclass(frozen=True)
class Scenario:
    name: str
    frame: bytes
    status: int
    with_key: bool = True


CONTEXT = {"agentId": "agent-7", "taskId": "task-1", "stepId": 3, "attempt": 2, "promptId": "prompt-9"}

SCENARIOS = [
    Scenario("success", invoke("echo", {"text": "grüße"}, id="s-1", context=CONTEXT), 200),
    Scenario(
        "invalid_input_envelope",
        b'{"jsonrpc":"2.0","id":2,"params":{"tool":"mcp.tool:echo","input":{}}}',
        400,
    ),
    Scenario("invalid_input_arguments", invoke("echo", {"text": 5, "more": True}, id=3), 400),
    Scenario("invalid_output", invoke("wrong_result", {}, id=4), 502),
    Scenario("not_found", invoke("no.such_tool", {}, id=5), 404),
    Scenario("unauthorized", invoke("echo", {"text": "hi"}, id=6), 401, with_key=False),
    Scenario("internal_error", invoke("raising", {"text": "hi"}, id=7), 500),
    Scenario("timeout", invoke("hanging", {}, id=8), 504),
    Scenario("not_json", b'{"jsonrpc":"2.0","id":9,"id":10}', 400),
    Scenario("not_jsonrpc", b'{"jsonrpc":"1.0","id":11,"method":"anything"}', 400),
    Scenario("unknown_method", b'{"jsonrpc":"2.0","id":12,"method":"anything"}', 404),
    Scenario("docs_search_bad_input", invoke("docs.search", {"topK": 1}, id=13), 400),
]
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
THE_FIVE = ["invalid_input_arguments", "invalid_output", "not_found", "unauthorized", "internal_error"]

scenarios = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doors")
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    (folder / "portbook.toml").write_text(
        "[docs]\nenabled = true\n"
        f'[keys]\nrequired = true\n[[keys.allow]]\nname = "tests"\nsha256 = "{digest}"\n'
    )
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[HttpServer]:
    with http_server("--log-dir", "http", cwd=folder) as server:
        yield server


def through_stdio(scenario: Scenario, folder: Path) -> tuple[bytes, dict[str, Any]]:
    env = environment(PORTBOOK_KEY=KEY) if scenario.with_key else environment()
    log_dir = f"stdio/{scenario.name}"
    finished = over_stdio(scenario.frame, cwd=folder, options=("--log-dir", log_dir), env=env)
    assert finished.code == 0
    (record,) = records(folder / log_dir)
    return finished.out, record


def through_http(scenario: Scenario, folder: Path, server: HttpServer) -> tuple[bytes, dict[str, Any]]:
    before = len(records(folder / "http"))
    response = server.rpc(scenario.frame, **({"authorization": f"Bearer {KEY}"} if scenario.with_key else {}))
    (record,) = records(folder / "http")[before:]
    assert response.status == scenario.status
    return b"%d\n%s\n" % (response.status, response.body), record


@pytest.mark.covers("000.errors.both-transports")
@scenarios
def test_both_doors_answer_with_the_golden_bytes(
    scenario: Scenario, folder: Path, server: HttpServer, golden: Callable[[str, bytes], None]
) -> None:
    over_pipe, _ = through_stdio(scenario, folder)
    over_http, _ = through_http(scenario, folder, server)
    golden(f"{scenario.name}/stdio.out", over_pipe)
    golden(f"{scenario.name}/http.out", over_http)
    assert over_http == b"%d\n%s" % (scenario.status, over_pipe)
    assert b"canary" not in over_pipe + over_http


@pytest.mark.covers("000.log.parity")
@scenarios
def test_the_records_of_both_doors_are_the_golden_record(
    scenario: Scenario, folder: Path, server: HttpServer, request: pytest.FixtureRequest
) -> None:
    _, from_pipe = through_stdio(scenario, folder)
    _, from_http = through_http(scenario, folder, server)
    if request.config.getoption("--regenerate-golden"):
        _regenerate(scenario, from_pipe)
    expected = _golden_record(scenario)
    assert not DeepDiff(from_pipe, from_http, exclude_paths=EXCLUDED)
    assert not DeepDiff(expected, from_pipe, exclude_paths=EXCLUDED)
    assert (from_pipe["transport"], from_pipe["route"]) == ("stdio", "stdio")
    assert (from_http["transport"], from_http["route"]) == ("http", "/rpc")
    assert list(from_pipe) == list(from_http) == list(expected)
    assert "canary" not in json.dumps([from_pipe, from_http])


@pytest.mark.covers("000.log.golden-fixture")
def test_the_comparison_fails_when_any_field_but_the_volatile_ones_differs() -> None:
    record = _golden_record(BY_NAME["invalid_input_arguments"])
    compared = 0
    for path in _leaves(record):
        changed = copy.deepcopy(record)
        _set(changed, path, "something else")
        difference = DeepDiff(record, changed, exclude_paths=EXCLUDED)
        assert bool(difference) == (path[0] not in VOLATILE), path
        compared += path[0] not in VOLATILE
    assert compared >= 15


def test_every_scenario_of_the_fixture_is_run_and_the_five_codes_are_among_them() -> None:
    kept = [json.loads(line) for line in FIXTURE.read_text().splitlines()]
    assert len(kept) == len(SCENARIOS)
    codes = {BY_NAME[name].name: json.loads(BY_NAME[name].frame) for name in THE_FIVE}
    assert len(codes) == 5
    assert {record["error"]["code"] for record in kept if record["error"]} == {
        "INVALID_INPUT", "INVALID_OUTPUT", "NOT_FOUND", "UNAUTHORIZED", "INTERNAL_ERROR",
    }  # fmt: skip


def _golden_record(scenario: Scenario) -> dict[str, Any]:
    return json.loads(FIXTURE.read_text().splitlines()[SCENARIOS.index(scenario)])


def _regenerate(scenario: Scenario, record: dict[str, Any]) -> None:
    lines = FIXTURE.read_text().splitlines() if FIXTURE.exists() else []
    lines += ["null"] * (len(SCENARIOS) - len(lines))
    lines[SCENARIOS.index(scenario)] = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    FIXTURE.write_text("\n".join(lines[: len(SCENARIOS)]) + "\n")


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    found = [leaf for key, child in children for leaf in _leaves(child, (*path, key))]
    yield from found or [path]


def _set(value: Any, path: tuple[Any, ...], new: object) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new
