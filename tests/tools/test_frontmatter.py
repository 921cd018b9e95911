"""The head of a Markdown file, read strictly."""

from __future__ import annotations

import pytest

from portbook.model import JSON
from portbook.tools.skill_folder import BadFrontmatter, frontmatter_of, line_of_member


@pytest.mark.parametrize(
    ("lines", "members"),
    [
        ("name: a", {"name": "a"}),
        ("a: one two  three", {"a": "one two  three"}),
        ("a: \"quoted: yes\"\nb: 'it''s'", {"a": "quoted: yes", "b": "it's"}),
        ("a: 1\nb: -2.5\nc: true\nd: null\ne: ~", {"a": 1, "b": -2.5, "c": True, "d": None, "e": None}),
        ("a: [x, y, 1]\nb: []", {"a": ["x", "y", 1], "b": []}),
        ("a:\n  - x\n  - y", {"a": ["x", "y"]}),
        ("a:\n  b: c\n  d: 'e'", {"a": {"b": "c", "d": "e"}}),
        ("# a comment\na: b\n\nc: d", {"a": "b", "c": "d"}),
        ("a:", {"a": None}),
        ("allowed-tools: x", {"allowed-tools": "x"}),
    ],
)
def test_the_head_of_a_file_is_read(lines: str, members: dict[str, JSON]) -> None:
    assert frontmatter_of(f"---\n{lines}\n---\nbody: not read\n") == members
    assert frontmatter_of(f"---\n{lines}\n---\n".replace("\n", "\r\n")) == members


@pytest.mark.parametrize(
    "lines",
    [
        "a: b\na: c",
        "a: >\n  folded",
        "a: |\n  literal",
        "a: &anchor b",
        "a: *alias",
        "a: !tag b",
        "a: {b: c}",
        "a: b: c",
        "a: b # comment",
        "a: b\n  c: d",
        "a:\n  b:\n    c: d",
        "a:\n  - x\n  b: c",
        "no colon",
        'a: "open',
        "a: 'open",
        "a: - b",
    ],
)
def test_what_goes_beyond_that_is_refused_with_its_line(lines: str) -> None:
    with pytest.raises(BadFrontmatter) as raised:
        frontmatter_of(f"---\n{lines}\n---\n")
    assert 2 <= raised.value.line <= 2 + lines.count("\n")


def test_a_member_has_its_line_and_one_that_is_missing_the_first() -> None:
    text = "---\nname: a\n\ndescription: b\n---\nversion: of the body\n"
    assert [line_of_member(text, name) for name in ("name", "description", "version")] == [2, 4, 1]


@pytest.mark.parametrize("text", ["", "# Title", "---\nname: a\n", "x\n---\nname: a\n---\n"])
def test_a_file_without_a_head_is_refused(text: str) -> None:
    with pytest.raises(BadFrontmatter):
        frontmatter_of(text)
