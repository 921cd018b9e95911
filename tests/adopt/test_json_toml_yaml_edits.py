"""JSON with comments: what is read as what, and what an edit leaves as it is."""

from __future__ import annotations

import json
import tomllib
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.adopt.client_document import Entry, edited
from portbook.adopt.json_toml_yaml_edits import NotReadable, edit_json, parse_json, toml_value
from portbook.model import JSONObject

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(), each, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_json_is_read_as_json(value: Any, indent: Any, is_ascii: bool) -> None:
    assert parse_json(json.dumps(value, indent=indent, ensure_ascii=is_ascii)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2, ]", [1, 2]),
        ('// x\n{"a": /* y */ 1 // z\n}\n', {"a": 1}),
        ('{"a": "// no comment /* nor this */"}', {"a": "// no comment /* nor this */"}),
        ("/**/ [] /***/", []),
    ],
)
def test_comments_and_trailing_commas_are_read(text: str, value: Any) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            '{"a" 1}',
            '{"a": 1 "b": 2}',
            "[1 2]",
            "{,}",
            "[,]",
            '{"a": 1}}',
            "01",
            "nul",
            '"\n"',
            "/* x",
        ),
        *('{"a": 1, "a": 2}', "[" * 300 + "]" * 300, "'a'", "{a: 1}"),
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(NotReadable):
        parse_json(text)


NEW: tuple[str, JSONObject] = ("p", {"x": 1})
EDITS = [
    ('{"s": {"a": 1, "b": 2}}', {"a"}, '{"s": {"p": {"x": 1}, "b": 2}}'),
    ('{"s": {"a": 1, "b": 2}}', {"b"}, '{"s": {"a": 1, "p": {"x": 1}}}'),
    ('{"s": {"a": 1, "b": 2}}', {"a", "b"}, '{"s": {"p": {"x": 1} }}'),
    ('{"s": {"a": 1, "b": 2, "c": 3}}', {"a", "c"}, '{"s": {"p": {"x": 1}, "b": 2 }}'),
    (
        '{"s": {\n\t"a": {\n\t\t"q": 1\n\t}, // one\n\t// two\n\t"b": 2, // three\n\t"c": 3 // four\n}}',
        {"a", "c"},
        '{"s": {\n\t"p": {\n\t\t"x": 1\n\t}, // one\n\t// two\n\t"b": 2 // three\n\t // four\n}}',
    ),
    (
        '{"s": {\r\n  "a": 1,\r\n  "b": 2,\r\n}}',
        {"b", "a"},
        '{"s": {\r\n  "p": {\r\n    "x": 1\r\n  },\r\n}}',
    ),
    (
        '{"s": {\n  "a": 1 /* x */,\n  "b": 2\n}}',
        {"b", "a"},
        '{"s": {\n  "p": {\n    "x": 1\n  } /* x */\n}}',
    ),
]


@pytest.mark.parametrize(("text", "remove", "wanted"), EDITS)
def test_an_entry_is_put_in_the_place_of_the_first(text: str, remove: set[str], wanted: str) -> None:
    assert edit_json(text, ("s",), remove, NEW) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"s": {"a": 1}}', '{"s": {}}'),
        ('{"s": {"b": 1, "a": 1}}', '{"s": {"b": 1 }}'),
        ('{"s": {\n  "b": 1,\n  "a": 1\n}}', '{"s": {\n  "b": 1\n}}'),
        ('{"s": {\n  "a": 1,\n  "b": 1\n}}', '{"s": {\n  "b": 1\n}}'),
    ],
)
def test_an_entry_is_removed(text: str, wanted: str) -> None:
    assert edit_json(text, ("s",), {"a"}) == wanted


@given(
    st.dictionaries(st.text(), VALUES, min_size=1, max_size=6), st.data(), st.sampled_from([None, 2, "\t"])
)
def test_an_edit_changes_these_entries_and_no_other(found: Any, data: st.DataObject, indent: Any) -> None:
    remove = data.draw(st.sets(st.sampled_from(sorted(found)), min_size=1))
    text = json.dumps({"before": 1, "s": found, "after": [2]}, indent=indent)
    rest = {name: value for name, value in found.items() if name not in remove}
    assert parse_json(edit_json(text, ("s",), remove)) == {"before": 1, "s": rest, "after": [2]}
    changed = parse_json(edit_json(text, ("s",), remove, ("\0new", {"x": 1})))
    assert changed == {"before": 1, "s": {**rest, "\0new": {"x": 1}}, "after": [2]}


PUT: Final = Entry("portbook", {"command": "p", "args": ["x"], "env": {"A B": "1\u007f"}})
WRITTEN: Final = '[s.portbook]\ncommand = "p"\nargs = ["x"]\n\n[s.portbook.env]\n"A B" = "1\\u007f"\n'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "[s.a]\nx = 1\n[s.a.env]\nY = 2\n\n# next\n[t]\nz = 1\n",
            f"{WRITTEN}\n# next\n[t]\nz = 1\n",
        ),
        (
            '[s."a"]   # comment\r\nx = 1',
            WRITTEN.replace("\n", "\r\n").rstrip(),
        ),
    ],
)
def test_tables_of_toml_are_replaced(text: str, wanted: str) -> None:
    changed = edited(text, "toml", ("s",), {"a"}, PUT)
    assert changed == wanted
    assert tomllib.loads(changed.replace("\r\n", "\n"))["s"] == {"portbook": PUT.value}


@given(st.recursive(st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1), st.lists))
def test_values_are_read_back_as_they_are(value: object) -> None:
    assert tomllib.loads(f"a = {toml_value(value)}")["a"] == value  # pyright: ignore[reportArgumentType] # drawn


def test_two_tables_become_one_and_comments_stay() -> None:
    text = "# first\n[s.a]\nx = 1\n# second\n[s.b]\nx = 2\n# third\n[s.c]\nx = 3\n"
    changed = edited(text, "toml", ("s",), {"a", "b"}, Entry("p", {"y": 1}))
    assert changed == "# first\n[s.p]\ny = 1\n# second\n# third\n[s.c]\nx = 3\n"
