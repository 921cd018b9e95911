"""The whole bench in small: a round over STDIO and HTTP, its page, its plots and its data."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.child import WrongAnswer
from bench.http_load import HttpCalls
from bench.page import MARK, tables, write_page
from bench.peers import ROOT, SERVERS, payload_floor
from bench.rounds import Measured, measure
from bench.scenarios import Scenario, Size
from bench.stdio_load import StdioCalls, batched

SIZE = Size(2, 4, 4, 1, (10,), (1,))
SERVE = [sys.executable, "-m", "portbook", "serve", "--config", "portbook.toml"]
LOG = ["--log-dir", "log"]
UPSTREAM = json.dumps([sys.executable, str(SERVERS / "fast_upstream.py")])
THROUGH = f'[mcp.fast]\ncommand = {UPSTREAM}\ntrust = "first-use"\nprefix = false\n'
BESIDE = {"PYTHONPATH": str(ROOT)}


def bare_loop(_: int) -> list[str]:
    return [sys.executable, str(SERVERS / "bare_loop.py")]


def floor(_: int) -> list[str]:
    return [sys.executable, *payload_floor()[1:]]


def over_stdio(_: int) -> list[str]:
    return [*SERVE, "--stdio", str(SERVERS / "portbook_echo.py"), *LOG]


def over_http(port: int) -> list[str]:
    return [*SERVE, "--http", "--port", str(port), str(SERVERS / "portbook_echo.py"), *LOG]


def api_client(_: int) -> list[str]:
    return [sys.executable, str(SERVERS / "before_an_api.py")]


def api_tool(_: int) -> list[str]:
    return [*api_client(0), *SERVE, "--stdio", *LOG]


@pytest.fixture(scope="module")
def measured() -> Measured:
    rows = [
        Scenario("bare loop", bare_loop, StdioCalls(300, 3)),
        Scenario("portbook", over_stdio, StdioCalls(100, 3)),
        Scenario(
            "floor", floor, StdioCalls(20, tool="echo_items", items=["a"]), extra={"PYTHONPATH": str(ROOT)}
        ),
        Scenario("bare dialect", over_stdio, StdioCalls(20, tool="list_schemas", dialect="bare")),
        Scenario("portbook over http", over_http, HttpCalls(40, connections=4)),
        Scenario("newest", over_http, HttpCalls(40, "2026-07-28", connections=4)),
        Scenario("through", lambda _: [*SERVE, "--stdio", *LOG], StdioCalls(100, 3), THROUGH),
        Scenario("client alone", api_client, StdioCalls(20, tool="api.echo")),
        Scenario("tool of an API", api_tool, StdioCalls(20, tool="api.echo")),
    ]
    return measure(SIZE, rows, lambda _: None)


def test_every_row_is_measured_in_every_round(measured: Measured) -> None:
    assert {name: len(own) for name, own in measured.runs.items()} == dict.fromkeys(measured.runs, 2)
    assert list(measured.runs) == [
        "bare loop",
        "portbook",
        "floor",
        "bare dialect",
        "portbook over http",
        "newest",
        "through",
        "client alone",
        "tool of an API",
    ]
    for run in measured.runs["portbook"]:
        assert run.calls_per_second > 0
        assert run.p50_us is not None
        assert run.p50_awake_us is not None
        assert run.start_ms is not None
        if sys.platform == "linux":
            assert run.cpu_us > 0
            assert run.idle_mib is not None
            assert run.idle_mib > 10


def test_the_page_keeps_what_people_wrote(measured: Measured, tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Benchmarks\n\nBy hand.\n\n{MARK}\n\nold figures\n")
    write_page(measured, tmp_path)
    written = page.read_text()
    assert written.startswith(f"# Benchmarks\n\nBy hand.\n\n{MARK}\n")
    assert "old figures" not in written
    assert tables(measured) in written
    for image in tmp_path.glob("*.svg"):
        assert f"]({image.name})" in written
    assert len(list(tmp_path.glob("*.svg"))) == 3


def test_a_server_that_ends_early_stops_the_bench(tmp_path: Path) -> None:
    rows = [Scenario("broken", lambda _: [sys.executable, "-c", "input()"], StdioCalls(3))]
    with pytest.raises(WrongAnswer, match="ended before its last answer"):
        measure(SIZE, rows, lambda _: None)


def test_batches_hold_all_lines_in_order_and_stay_small() -> None:
    lines = [b"%d\n" % number for number in range(200)] + [b"x" * 70_000 + b"\n"] * 2 + [b"last\n"]
    made = batched(lines)
    assert b"".join(data for _, data in made) == b"".join(lines)
    assert [count for count, _ in made] == [64, 64, 64, 8, 1, 1, 1]
    assert batched([]) == []


def test_a_row_that_does_not_exist_is_named_beside_those_that_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--only", "payload"]) == 2
    told = capsys.readouterr().err
    assert told.startswith('bench: no row "payload"')
    assert '"payload 1 kB"' in told
