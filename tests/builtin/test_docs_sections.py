from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.builtin.docs_sections import Section, cut


def sections(path: str, text: str) -> list[tuple[str, str, str]]:
    return [tuple(section) for section in cut(path, text)]


CASES = [
    (
        "headings of all levels",
        "a/b.md",
        "# One\nfirst\n\n###### Six ##\nlast\n",
        [("a/b.md#one", "One", "first"), ("a/b.md#six", "Six", "last")],
    ),
    (
        "text before the first heading",
        "a.md",
        "before\n\n# Title\nafter",
        [("a.md", "Title", "before"), ("a.md#title", "Title", "after")],
    ),
    ("no heading", "notes/a.markdown", "only text", [("notes/a.markdown", "a", "only text")]),
    ("a heading and nothing else", "a.md", "# Title", [("a.md#title", "Title", "")]),
    (
        "equal headings",
        "a.md",
        "# A\n# A\n# A-2\n# A",
        [("a.md#a", "A", ""), ("a.md#a-2", "A", ""), ("a.md#a-2-2", "A-2", ""), ("a.md#a-3", "A", "")],
    ),
    (
        "headings without letters",
        "a.md",
        "#\n# !?\n# Grüße, 世界!",
        [("a.md#section", "!?", ""), ("a.md#section-2", "!?", ""), ("a.md#grüße-世界", "Grüße, 世界!", "")],
    ),
    ("a blank heading", "a.md", "#  \nx", [("a.md#section", "a", "x")]),
    ("a blank heading in plain text", "a.txt", "# \n# B", [("a.txt", "B", "# \n# B")]),
    ("no space after the hash", "a.md", "#no\n#5 bolt", [("a.md", "a", "#no\n#5 bolt")]),
    ("seven hashes", "a.md", "####### no", [("a.md", "a", "####### no")]),
    ("indented by four", "a.md", "text\n\n    # no", [("a.md", "a", "text\n\n    # no")]),
    ("indented by three", "a.md", "   # Yes", [("a.md#yes", "Yes", "")]),
    ("hashes that close nothing", "a.md", "# C# and F#", [("a.md#c-and-f", "C# and F#", "")]),
    (
        "fenced code",
        "a.md",
        "# A\n```sh\n# no\n```\n# B",
        [("a.md#a", "A", "```sh\n# no\n```"), ("a.md#b", "B", "")],
    ),
    (
        "a fence of tildes",
        "a.md",
        "~~~\n# no\n```\n# no\n~~~\n# A",
        [("a.md", "A", "~~~\n# no\n```\n# no\n~~~"), ("a.md#a", "A", "")],
    ),
    ("a longer fence", "a.md", "````\n```\n# no\n````", [("a.md", "a", "````\n```\n# no\n````")]),
    ("words after a closing fence", "a.md", "```\n``` x\n# no", [("a.md", "a", "```\n``` x\n# no")]),
    ("a closing fence indented by four", "a.md", "```\n    ```\n# no", [("a.md", "a", "```\n    ```\n# no")]),
    ("a fence without an end", "a.md", "```\n# no", [("a.md", "a", "```\n# no")]),
    (
        "a fence in a list",
        "a.md",
        "- ```\n  # no\n  ```\n# A",
        [("a.md", "A", "- ```\n  # no\n  ```"), ("a.md#a", "A", "")],
    ),
    (
        "a fence in a quotation",
        "a.md",
        "> ```\n> # no\n> ```\n# A",
        [("a.md", "A", "> ```\n> # no\n> ```"), ("a.md#a", "A", "")],
    ),
    (
        "code within a sentence",
        "a.md",
        "```x``` is code\n# A",
        [("a.md", "A", "```x``` is code"), ("a.md#a", "A", "")],
    ),
    (
        "line ends of Windows",
        "a.md",
        "# A\r\nx\r\n# B\r\ny\r\n",
        [("a.md#a", "A", "x"), ("a.md#b", "B", "y")],
    ),
    ("control characters", "a.md", "# A\x00B\nx\x1b[0m\x85y", [("a.md#a-b", "A B", "x [0m y")]),
    ("a suffix in capitals", "A.MD", "# A\nx", [("A.MD#a", "A", "x")]),
    ("plain text", "a/notes.txt", " some\ntext ", [("a/notes.txt", "notes", "some\ntext")]),
    ("plain text with a heading", "a.txt", "x\n# Title\ny", [("a.txt", "Title", "x\n# Title\ny")]),
    (
        "plain text with a line below its title",
        "a.txt",
        "Title\n=====\ny",
        [("a.txt", "Title", "Title\n=====\ny")],
    ),
    ("reStructuredText", "a.rst", "====\nTop!\n====\n\nx", [("a.rst", "Top!", "====\nTop!\n====\n\nx")]),
    ("code in reStructuredText", "a.rst", "# no\n\nTop\n---", [("a.rst", "Top", "# no\n\nTop\n---")]),
    ("a line too short to underline", "a.rst", "Long text\n---", [("a.rst", "a", "Long text\n---")]),
    ("two lines of dashes", "a.rst", "----\n----", [("a.rst", "a", "----\n----")]),
    ("blank Markdown", "a.md", " \n\n", []),
    ("blank text", "a.txt", " \n\n", []),
]


@pytest.mark.parametrize(
    ("path", "text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_document_is_cut_at_its_headings(
    path: str, text: str, expected: list[tuple[str, str, str]]
) -> None:
    assert sections(path, text) == expected


def test_an_endless_heading_gives_a_short_title_and_a_short_id() -> None:
    [section] = cut("a.md", "# " + "x" * 1_000_000)
    assert section == Section("a.md#" + "x" * 80, "x" * 199 + "…", "")


def test_a_hundred_thousand_equal_headings_each_get_their_own_id() -> None:
    found = [section.id for section in cut("a.md", "# a\n" * 100_000)]
    assert len(set(found)) == 100_000
    assert found[-1] == "a.md#a-100000"


HOSTILE_LINES = [
    ("list markers", "* " * 200_000),
    ("backticks", "`" * 400_000 + "x`"),
    ("hashes", "# " * 200_000 + "x"),
    ("spaces", "# " + " " * 400_000 + "x"),
    ("dashes", "-" * 400_000 + "\n" + "-" * 400_000 + "x"),
]


@pytest.mark.parametrize("line", [line for _, line in HOSTILE_LINES], ids=[name for name, _ in HOSTILE_LINES])
@pytest.mark.parametrize("suffix", ["md", "txt", "rst"])
def test_a_hostile_line_does_not_stop_the_cutting(line: str, suffix: str) -> None:
    """A pattern that backtracks would not come back for hours."""
    assert sections(f"a.{suffix}", line + "\n\nend")[-1][2].endswith("end")


@given(st.text(st.sampled_from("#`~->=ab \n\t\r\x00"), max_size=200), st.sampled_from(["md", "txt", "rst"]))
def test_ids_are_unique_and_titles_never_empty_whatever_the_text(text: str, suffix: str) -> None:
    found = list(cut(f"a.{suffix}", text))
    assert len({section.id for section in found}) == len(found)
    for section in found:
        assert section.title == " ".join(section.title.split()) != ""
        assert section.body == section.body.strip()
        assert "\0" not in section.body
