"""Where keys stand in a TOML document: line and column of each, however it is written."""

from __future__ import annotations

import tomllib

import pytest

from portbook.settings.toml_file import Path, TomlPositions

DOCUMENT = '''\
# a comment [not.a.table]
top = 1
"quoted.key" = 2

[policy]
domains = ["a", # ] not the end
  "b"]
text = """
[not]
key = 1
"""
other = \'\'\'
[neither]
\'\'\'
escaped = "a \\" ] # b"

[[policy.rules]]
name = "first"
where = { "/a" = { minimum = 1 } }

  [[policy.rules]]
  name = 'second'
  [policy.rules.where]
  "/x.y" = { const = 1 }

[http."or.ders".tools.get]
a.b = 1
'''


@pytest.mark.parametrize(
    ("path", "position"),
    [
        (("top",), (2, 1)),
        (("quoted.key",), (3, 1)),
        (("policy",), (5, 1)),
        (("policy", "domains"), (6, 1)),
        (("policy", "text"), (8, 1)),
        (("policy", "other"), (12, 1)),
        (("policy", "escaped"), (15, 1)),
        (("policy", "rules", 0), (17, 1)),
        (("policy", "rules", 0, "where"), (19, 1)),
        (("policy", "rules", 0, "where", "/a", "minimum"), (19, 20)),
        (("policy", "domains", 1), (7, 3)),
        (("policy", "rules", 0, "where", "/a", "maximum"), (19, 11)),
        (("policy", "rules", 1), (21, 3)),
        (("policy", "rules", 1, "name"), (22, 3)),
        (("policy", "rules", 1, "where", "/x.y"), (24, 3)),
        (("http", "or.ders", "tools", "get"), (26, 1)),
        (("http", "or.ders", "tools", "get", "a", "b"), (27, 1)),
        (("http", "or.ders", "tools", "get", "missing"), (26, 1)),
        (("nowhere",), (1, 1)),
    ],
)
def test_a_key_is_found_at_its_position_or_at_that_of_what_holds_it(
    path: Path, position: tuple[int, int]
) -> None:
    tomllib.loads(DOCUMENT)
    assert TomlPositions(DOCUMENT).of(path) == position


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "a = 1", "a = [\n\n]"])
def test_a_short_document_is_read_to_its_end(text: str) -> None:
    assert TomlPositions(text).of(("a",)) == (1, 1)


NESTED = """\
list = [ # first
  { a = 1, b = [2, [3, "]"]] }, { c.d = 'x' },
  2026-01-02T03:04:05Z, 1_000,
]
empty = []
none = {}
last = {a={b={c=[{d=1}]}}}
"""


@pytest.mark.parametrize(
    ("path", "position"),
    [
        (("list", 0), (2, 3)),
        (("list", 0, "b"), (2, 12)),
        (("list", 0, "b", 1, 1), (2, 24)),
        (("list", 1, "c", "d"), (2, 35)),
        (("list", 2), (3, 3)),
        (("list", 3), (3, 25)),
        (("empty",), (5, 1)),
        (("none", "missing"), (6, 1)),
        (("last", "a", "b", "c", 0, "d"), (7, 19)),
    ],
)
def test_what_is_inside_a_value_is_found_there(path: Path, position: tuple[int, int]) -> None:
    tomllib.loads(NESTED)
    assert TomlPositions(NESTED).of(path) == position
