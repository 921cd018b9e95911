"""Tables of TOML, replaced in place."""

from __future__ import annotations

import tomllib
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.adopt.client_document import Entry, edited
from portbook.adopt.toml_text import toml_value

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
