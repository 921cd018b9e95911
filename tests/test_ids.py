"""Ids: what they look like, and when two of them are the same."""

from __future__ import annotations

import os
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.ids import ContentIds, RandomIds
from portbook.model import Identity
from portbook.wire.trace_context import traceparent_of
from support.python_program import run_python


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def assert_named_by_uuids(identity: Identity, version: int) -> None:
    assert str(uuid.UUID(identity.request)) == identity.request
    for name in (identity.trace, identity.span):
        assert uuid.UUID(name).hex == name
    for name in identity:
        assert uuid.UUID(name).version == version
        assert uuid.UUID(name).variant == uuid.RFC_4122


def test_random_names_are_uuids_of_version_4_and_never_repeat() -> None:
    ids = RandomIds()
    made = [ids.name(b"always the same") for _ in range(10_000)]
    for ids_of_one in made[:200]:
        assert_named_by_uuids(Identity.read(ids_of_one), version=4)
    for names in zip(*made, strict=True):
        assert len(set(names)) == 10_000
    assert len({traceparent_of(Identity.read(each)) for each in made}) == 10_000
    assert not RandomIds.deterministic


def test_random_names_of_two_makers_differ() -> None:
    one, other = RandomIds(), RandomIds()
    assert {one.name(b"") for _ in range(100)}.isdisjoint({other.name(b"") for _ in range(100)})


def test_a_forked_child_does_not_repeat_the_names_of_its_parent() -> None:
    # In a process of its own: to fork one that has threads is a warning, and a warning is an error.
    program = """
import json, os
from portbook.ids import RandomIds
ids = RandomIds()
ids.name(b"")
def draw():
    return [[each.decode() for each in ids.name(b"")] for _ in range(100)]
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
    assert_named_by_uuids(Identity.read(ContentIds().name(CONTENT)), version=5)
    assert len(set(ContentIds().name(CONTENT))) == 3
    assert ContentIds.deterministic


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_names_made_of_content_are_equal_exactly_where_the_content_is(one: bytes, other: bytes) -> None:
    assert ContentIds().name(one) == ContentIds().name(bytes(bytearray(one)))
    assert set(ContentIds().name(one)).isdisjoint(ContentIds().name(other)) == (one != other)


def test_names_made_of_content_never_change() -> None:
    # Written down once: a name that moves would break every record that refers to it.
    assert Identity.read(ContentIds().name(b"{}")) == Identity(
        "c1332931-4808-5f6b-8b87-1f309b5af3ba",
        "f0c27f00ba9e5feba6053caeeab8526b",
        "7cf5ee95a40a5aa6bd752a87f05abf5c",
    )


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_names_made_of_content_are_the_same_in_another_process(seed: str) -> None:
    program = """
import json, sys
from portbook.ids import ContentIds
print(json.dumps([each.decode() for each in ContentIds().name(sys.argv[1].encode())]))
"""
    assert run_python(program, CONTENT.decode(), seed=seed) == list(Identity.read(ContentIds().name(CONTENT)))


def test_ids_go_on_after_an_exception_while_some_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = RandomIds()
    drawn = os.urandom

    def fail(count: int) -> bytes:
        monkeypatch.setattr(os, "urandom", drawn)
        raise MemoryError

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(MemoryError):
        next(ids.drawn)
    assert ids.name(b"") != ids.name(b"")
    assert next(ids.drawn)
