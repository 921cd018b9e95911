"""Records as people and spreadsheets get them."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from portbook.cli.audit_export import COLUMNS, CsvWriter
from portbook.cli.audit_record_in_words import in_a_line, in_lines


@pytest.mark.covers("002.logging.csv")
@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@x", "'@x"),
        ("\uff1dx", "'\uff1dx"),
        ("\tx", "'\\tx"),
        ("a=b", "a=b"),
        ('a"b,c\nd', 'a"b,c\nd'),
        (None, ""),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (0, "0"),
        (-1.5, "-1.5"),
        ({"a": [1]}, '{"a":[1]}'),
    ],
)
def test_no_cell_is_a_formula(value: Any, cell: str) -> None:
    out = io.StringIO()
    writer = CsvWriter(out)
    writer.write({"session_id": value, "seq": 1, "unheard_of": 2})
    [row] = csv.DictReader(io.StringIO(out.getvalue()))
    assert list(row) == list(COLUMNS)
    assert (row["seq"], row["session_id"], row["hash"]) == ("1", cell, "")


def test_a_line_shows_that_something_is_not_there() -> None:
    assert in_a_line({"tool_id": "mcp.tool:echo"}) == "-    -  echo  -  - ms  -  -  -"


def test_what_a_forged_record_holds_is_escaped() -> None:
    forged: Any = {"caller": ["\x1b[2J"], "a\nb": "\u202e", "c": {"d": {"e": 1}, "f": {}}}
    assert "\x1b" not in in_a_line(forged)
    assert list(in_lines(forged)) == [
        '  caller: ["\\u001b[2J"]',
        "  a\\nb: \\u202e",
        "  c.d.e: 1",
        "  c.f: {}",
    ]
