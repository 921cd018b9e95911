"""Tables of settings, read to their end whatever is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from portbook.settings import BadSettings
from portbook.settings.bad_settings import read_whole

Complain = Callable[[tuple[str | int, ...], str], Exception]


def complain(path: tuple[str | int, ...], said: str) -> BadSettings:
    return BadSettings(f"{'.'.join(map(str, path))} {said}")


def read(tables: Mapping[str, Any], complain: Complain) -> list[str]:
    """Each table needs a number `size`, and may have a list `names`."""
    for name, table in tables.items():
        complain(("x", name), "a warning, which is made and not raised")
        for key in table:
            if key not in ("size", "names", "openapi"):
                raise complain(("x", name, key), "unknown")
        if not isinstance(table.get("size"), int):
            raise complain(("x", name, "size"), "no number")
        for number, each in enumerate(table.get("names", ())):
            if not isinstance(each, str):
                raise complain(("x", name, "names", number), "no text")
        if table.get("openapi"):
            raise complain(("x", name, "openapi"), "missing")
        if not table:
            raise complain(("x", name), "empty")
    return list(tables)


def problems(tables: Mapping[str, Any]) -> tuple[str, ...]:
    with pytest.raises(BadSettings) as raised:
        read_whole(tables, read, complain)
    return raised.value.problems


def test_tables_without_a_problem_are_read() -> None:
    assert read_whole({"a": {"size": 1}, "b": {"size": 2}}, read, complain) == ["a", "b"]


def test_every_problem_of_every_table_is_told_once() -> None:
    tables = {"a": {"siz": 1, "size": 1, "names": [1, 2]}, "b": {"size": "x"}, "c": {"nams": 1, "size": 1}}
    assert problems(tables) == (
        "x.a.siz unknown",
        "x.a.names.0 no text",
        "x.b.size no number",
        "x.c.nams unknown",
    )


def test_a_key_that_others_depend_on_is_told_alone() -> None:
    assert problems({"a": {"size": 1, "openapi": "x"}, "b": {"z": 1, "size": 1}}) == (
        "x.a.openapi missing",
        "x.b.z unknown",
    )


def test_a_problem_without_a_place_ends_the_reading() -> None:
    def fail(tables: Mapping[str, Any], complain: Complain) -> None:
        raise BadSettings("elsewhere")

    with pytest.raises(BadSettings, match="elsewhere"):
        read_whole({"a": {}}, fail, complain)
