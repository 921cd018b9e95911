"""From a pointer to the source: line, column, and a caret that stands under the value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.wire.source_positions import locate, name_before, span_at

SOURCE = """{
  "name": "é\\"x",
  "deep": { "a/b": [ 1, { "~": true } , [] ], "": {"": null} },
\t"text" : "[{,:}]"
}
"""


@pytest.mark.parametrize(
    ("pointer", "place", "under"),
    [
        ("", (1, 1), "{"),
        ("/name", (2, 11), '"é\\"x"'),
        ("/deep", (3, 11), "{"),
        ("/deep/a~1b", (3, 20), "["),
        ("/deep/a~1b/0", (3, 22), "1"),
        ("/deep/a~1b/1", (3, 25), "{"),
        ("/deep/a~1b/1/~0", (3, 32), "true"),
        ("/deep/a~1b/2", (3, 41), "["),
        ("/deep/", (3, 51), "{"),
        ("/deep//", (3, 56), "null"),
        ("/text", (4, 11), '"[{,:}]"'),
        ("/nowhere", (1, 1), "{"),
    ],
)
def test_a_value_is_found_by_its_pointer(pointer: str, place: tuple[int, int], under: str) -> None:
    span = locate(SOURCE, [pointer])[pointer]
    assert (span.line, span.column) == place
    assert span.text[span.offset : span.offset + span.width] == under


def test_a_long_line_is_cut_around_the_value() -> None:
    source = json.dumps({"before": "x" * 500, "here": 5, "after": "y" * 500})
    span = locate(source, ["/here"])["/here"]
    assert (span.line, span.column) == (1, source.index("5,") + 1)
    assert len(span.text) <= 102
    assert span.text[span.offset] == "5"
    assert (span.text[0], span.text[-1]) == ("…", "…")


def test_what_cannot_be_shown_is_a_dot_and_moves_nothing() -> None:
    span = locate('{"a\u202eb": "\u009b1m", "c": 5}', ["/c"])["/c"]
    assert span.text == '{"a·b": "·1m", "c": 5}'
    assert span.text[span.offset] == "5"


@pytest.mark.parametrize(("source", "line"), [("{}", 1), ("\n\n{}", 3), ("\r\n{}\r\n", 2)])
def test_lines_are_counted_from_one_whatever_ends_them(source: str, line: int) -> None:
    span = locate(source, [""])[""]
    assert (span.line, span.column, span.text) == (line, 1, "{}")


@pytest.mark.parametrize(("line", "column", "text"), [(1, 3, "ab"), (2, 1, "cd"), (9, 9, "")])
def test_a_place_of_a_source_that_is_no_json_can_be_shown_too(line: int, column: int, text: str) -> None:
    span = span_at("ab\ncd", line, column)
    assert (span.line, span.column, span.text) == (line, column, text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=15,
)


def places(value: Any, pointer: str = "") -> dict[str, Any]:
    found = {pointer: value}
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, below in parts:
        found |= places(below, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")
    return found


@given(VALUES, st.sampled_from([None, 0, 2]))
def test_every_value_of_a_document_is_found_where_it_stands(value: Any, indent: int | None) -> None:
    source = json.dumps(value, indent=indent, ensure_ascii=False)
    expected = places(value)
    lines = source.split("\n")
    for pointer, span in locate(source, expected).items():
        rest = "\n".join([lines[span.line - 1][span.column - 1 :], *lines[span.line :]])
        found, _ = json.JSONDecoder().raw_decode(rest)
        assert found == expected[pointer]


@pytest.mark.parametrize(
    ("pointer", "place", "under"),
    [
        ("/name", (2, 3), '"name"'),
        ("/deep/a~1b", (3, 13), '"a/b"'),
        ("/deep/a~1b/1/~0", (3, 27), '"~"'),
        ("/deep//", (3, 52), '""'),
        ("/text", (4, 2), '"text"'),
        ("/deep/a~1b/1", (1, 1), "{"),
    ],
)
def test_a_name_is_found_by_the_pointer_of_its_value(
    pointer: str, place: tuple[int, int], under: str
) -> None:
    span = locate(SOURCE, [pointer], are_names=True)[pointer]
    assert (span.line, span.column) == place
    assert span.text[span.offset : span.offset + span.width] == under


def test_the_name_before_a_character_is_found_on_an_earlier_line_too() -> None:
    span = name_before('{\n "a" \n :\n 1}', 4, 2)
    assert span[:2] == (2, 2)
    assert (span.text, span.offset, span.width, span.length) == (' "a" ', 1, 3, 3)
    assert name_before("[1, 2", 1, 5)[:2] == (1, 5)
