"""Definitions side by side: all of them, within the columns of the terminal."""

from __future__ import annotations

from typing import Any

import click
import pytest

from portbook.cli.review import side_by_side


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "43")


def shown(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[str]:
    return [click.unstyle(line) for line in side_by_side(before, after)]


def test_parts_that_are_the_same_are_not_shown() -> None:
    parts = {"title": "A", "inputSchema": {"type": "object"}}
    assert shown(parts, dict(reversed(parts.items()))) == []


def test_texts_stand_beside_each_other_line_by_line_and_are_wrapped_not_cut() -> None:
    assert shown({"description": "Short.\nSame."}, {"description": "A" * 25}) == [
        "description",
        "Short.               │ AAAAAAAAAAAAAAAAAAAA",
        "Same.                │ AAAAA",
    ]


def test_of_a_schema_the_places_that_differ_are_shown() -> None:
    before = {"inputSchema": {"properties": {"a/b": {"type": "string"}, "c": True}}}
    after = {"inputSchema": {"properties": {"a/b": {"type": "integer"}, "d": {"enum": [1]}}}}
    assert shown(before, after) == [
        "inputSchema",
        "/properties/a~1b/type",
        "string               │ integer",
        "/properties/c",
        "true                 │",
        "/properties/d",
        "                     │ {",
        '                     │   "enum": [',
        "                     │     1",
        "                     │   ]",
        "                     │ }",
    ]


def test_a_new_definition_has_one_side_and_so_has_one_that_is_gone() -> None:
    assert shown(None, {"title": "A"}) == ["title", "                     │ A"]
    assert shown({"title": "A"}, None) == ["title", "A                    │"]


def test_hidden_characters_are_seen_and_wide_ones_take_two_columns() -> None:
    assert shown(None, {"title": "a\u202eb\x1b[2J"}) == ["title", "                     │ a\\u202eb\\x1b[2J"]
    assert shown({"title": "世界" * 6}, None) == [
        "title",
        "世界世界世界世界世界 │",
        "世界                 │",
    ]
