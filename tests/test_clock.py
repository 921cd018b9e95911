"""Time and names: what they look like, and when two of them are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook import clock as clock_module
from portbook.clock import ContentIds, RandomIds, SystemClock
from portbook.model import Identity
from portbook.wire.trace_context import trace_of, traceparent_of


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def run_python(program: str, *arguments: str, seed: str = "random") -> Any:
    """Run a program in a process of its own, and return the JSON that it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
        timeout=60,
    )
    return json.loads(done.stdout)


def assert_named_by_uuids(identity: Identity, version: int) -> None:
    assert str(uuid.UUID(identity.request)) == identity.request
    for name in (identity.trace, identity.span):
        assert uuid.UUID(name).hex == name
    for name in identity:
        assert uuid.UUID(name).version == version
        assert uuid.UUID(name).variant == uuid.RFC_4122


# --- the clock


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


# --- the names


def test_random_names_are_uuids_of_version_4_and_never_repeat() -> None:
    ids = RandomIds()
    made = [ids.name(b"always the same") for _ in range(10_000)]
    for identity in made[:200]:
        assert_named_by_uuids(identity, version=4)
    for names in zip(*made, strict=True):
        assert len(set(names)) == 10_000
    assert len({traceparent_of(identity) for identity in made}) == 10_000
    assert not RandomIds.deterministic


def test_random_names_of_two_makers_differ() -> None:
    one, other = RandomIds(), RandomIds()
    assert {one.name(b"") for _ in range(100)}.isdisjoint({other.name(b"") for _ in range(100)})


def test_a_forked_child_does_not_repeat_the_names_of_its_parent() -> None:
    # In a process of its own: to fork one that has threads is a warning, and a warning is an error.
    program = """
import json, os
from portbook.clock import RandomIds
ids = RandomIds()
ids.name(b"")
def draw():
    return [list(ids.name(b"")) for _ in range(100)]
reading, writing = os.pipe()
if (child := os.fork()) == 0:
    os.write(writing, json.dumps(draw()).encode())
    os._exit(0)
os.close(writing)
own = draw()
theirs = b"".join(iter(lambda: os.read(reading, 65536), b""))
os.waitpid(child, 0)
print(json.dumps([own, json.loads(theirs)]))
"""
    own, theirs = run_python(program)
    assert len(own) == len(theirs) == 100
    names = [name for identity in own + theirs for name in identity]
    assert len(set(names)) == len(names)


CONTENT = b'{"method":"mcp.tool.invoke","params":{"tool":"mcp.tool:echo"}}'


def test_names_made_of_content_are_uuids_of_version_5() -> None:
    assert_named_by_uuids(ContentIds().name(CONTENT), version=5)
    assert len(set(ContentIds().name(CONTENT))) == 3
    assert ContentIds.deterministic


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_names_made_of_content_are_equal_exactly_where_the_content_is(one: bytes, other: bytes) -> None:
    assert ContentIds().name(one) == ContentIds().name(bytes(bytearray(one)))
    assert set(ContentIds().name(one)).isdisjoint(ContentIds().name(other)) == (one != other)


def test_names_made_of_content_never_change() -> None:
    # Written down once: a name that moves would break every record that refers to it.
    assert ContentIds().name(b"{}") == Identity(
        "c1332931-4808-5f6b-8b87-1f309b5af3ba",
        "f0c27f00ba9e5feba6053caeeab8526b",
        "7cf5ee95a40a5aa6bd752a87f05abf5c",
    )


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_names_made_of_content_are_the_same_in_another_process(seed: str) -> None:
    program = """
import json, sys
from portbook.clock import ContentIds
print(json.dumps(ContentIds().name(sys.argv[1].encode())))
"""
    assert run_python(program, CONTENT.decode(), seed=seed) == list(ContentIds().name(CONTENT))


@pytest.mark.parametrize("ids", [RandomIds(), ContentIds()], ids=lambda ids: type(ids).__name__)
def test_the_traceparent_of_a_call_has_the_lengths_of_the_w3c(ids: RandomIds | ContentIds) -> None:
    identity = ids.name(CONTENT)
    version, trace, parent, flags = traceparent_of(identity).split("-")
    assert (version, trace, flags) == ("00", identity.trace, "01")
    assert [len(part) for part in (version, trace, parent, flags)] == [2, 32, 16, 2]
    assert identity.span.startswith(parent)
    assert trace_of(traceparent_of(identity)) == identity.trace


SPAN = "7cf5ee95a40a5aa6bd752a87f05abf5c"
TRACE = "f0c27f00ba9e5feba6053caeeab8526b"


@pytest.mark.parametrize(
    "trace",
    [
        case("capitals", TRACE.upper()),
        case("a UUID with its dashes", str(uuid.UUID(TRACE))),
    ],
)
def test_a_trace_that_its_sender_wrote_otherwise_is_the_same_in_the_header(trace: str) -> None:
    assert traceparent_of(Identity("", trace, SPAN)) == f"00-{TRACE}-{SPAN[:16]}-01"


@pytest.mark.parametrize(
    "trace",
    [
        case("a word", "checkout"),
        case("one digit too few", TRACE[1:]),
        case("one digit too many", TRACE + "0"),
        case("digits of others", "g" * 32),
        case("the trace that the W3C forbids", "0" * 32),
        case("letters beyond ASCII", "größe"),
    ],
)
def test_a_trace_that_its_sender_named_otherwise_has_a_valid_header_always_the_same(trace: str) -> None:
    header = traceparent_of(Identity("", trace, SPAN))
    assert trace_of(header) is not None
    assert header == traceparent_of(Identity("another", trace, SPAN))
    assert header != traceparent_of(Identity("", trace + "x", SPAN))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128))
def test_every_name_of_a_trace_makes_a_valid_header(trace: str) -> None:
    assert trace_of(traceparent_of(Identity("", trace, SPAN))) is not None
