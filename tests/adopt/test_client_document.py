"""A client's document, edited in every form, and refused where an edit would touch anything else."""

from __future__ import annotations

from typing import Final

import pytest

from portbook.adopt.client_document import Entry, NotReadable, decoded, edited, parsed
from portbook.exports.client_table import TextForm

PUT: Final = Entry("portbook", {"command": "p", "args": ["x"], "env": {"A B": "1\u007f"}})


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("toml", "s.a.x = 1\n"),
        ("toml", "s = { a = { x = 1 } }\n"),
        ("toml", "[s]\na = { x = 1 }\n"),
        ("yaml", "s: {a: {x: 1}}\n"),
        ("yaml", "other: 1\n"),
        ("json", '{"other": 1}'),
        ("json", '{"s": {"b": {}}}'),
        ("yaml", "s:\n  a: &x {y: 1}\n  b: *x\n"),
    ],
)
def test_a_document_in_a_style_that_is_not_known_is_refused(form: TextForm, text: str) -> None:
    with pytest.raises(NotReadable):
        edited(text, form, ("s",), {"a"}, PUT)


def test_bytes_that_are_not_text_are_refused() -> None:
    with pytest.raises(NotReadable, match="not UTF-8"):
        decoded(b"\xff")
    for form in ("toml", "yaml"):
        with pytest.raises(NotReadable):
            parsed("[a: {", form)
