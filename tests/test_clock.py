"""The clock: what time looks like."""

from __future__ import annotations

from typing import Any

import pytest

from portbook import clock as clock_module
from portbook.clock import SystemClock
from support.python_program import run_python


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("nanos", "written"),
    [
        case("the epoch", 0, "1970-01-01T00:00:00.000Z"),
        case("milliseconds are cut, not rounded", 999_999_999, "1970-01-01T00:00:00.999Z"),
        case("milliseconds have three digits", 7_000_000, "1970-01-01T00:00:00.007Z"),
        case("a leap day", 1_709_164_799 * SECOND + 42 * 10**6, "2024-02-28T23:59:59.042Z"),
        case("after the leap day", 1_709_251_200 * SECOND, "2024-03-01T00:00:00.000Z"),
        case("beyond 32 bits", 4_102_444_800 * SECOND + 1, "2100-01-01T00:00:00.000Z"),
    ],
)
def test_now_is_iso_8601_in_utc_with_milliseconds(
    monkeypatch: pytest.MonkeyPatch, nanos: int, written: str
) -> None:
    monkeypatch.setattr(clock_module.time, "time_ns", lambda: nanos)
    assert SystemClock().now() == written


def test_now_follows_the_system_clock_across_seconds_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([SECOND - 1, SECOND, SECOND + 5_000_000, 60 * SECOND, SECOND])
    monkeypatch.setattr(clock_module.time, "time_ns", lambda: next(moments))
    clock = SystemClock()
    assert [clock.now() for _ in range(5)] == [
        "1970-01-01T00:00:00.999Z",
        "1970-01-01T00:00:01.000Z",
        "1970-01-01T00:00:01.005Z",
        "1970-01-01T00:01:00.000Z",
        "1970-01-01T00:00:01.000Z",
    ]


def test_now_does_not_depend_on_the_time_zone() -> None:
    program = """
import json, os, time
os.environ["TZ"] = "JST-9"
time.tzset()
time.time_ns = lambda: 0
from portbook.clock import SystemClock
print(json.dumps([time.strftime("%H", time.localtime(0)), SystemClock().now()]))
"""
    assert run_python(program) == ["09", "1970-01-01T00:00:00.000Z"]


def test_ticks_never_go_back() -> None:
    clock = SystemClock()
    ticks = [clock.tick() for _ in range(1000)]
    assert ticks == sorted(ticks)
    assert ticks[0] < ticks[-1]


def test_a_second_thread_never_gets_the_date_of_an_earlier_timestamp(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [0]
    monkeypatch.setattr(clock_module.time, "time_ns", lambda: moment[0])
    clock = SystemClock()
    clock.now()
    moment[0] = 3600 * SECOND
    written = clock_module.time.strftime
    meanwhile: list[str] = []

    def interrupted(form: str, when: Any) -> str:
        if not meanwhile:
            meanwhile.append("")
            meanwhile.append(clock.now())  # as another thread would, in the midst of it
        return written(form, when)

    monkeypatch.setattr(clock_module.time, "strftime", interrupted)
    assert clock.now() == meanwhile[1] == "1970-01-01T01:00:00.000Z"
