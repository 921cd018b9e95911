"""Where keys stand in a TOML document: the line of each, however it is written."""

from __future__ import annotations

import tomllib

import pytest

from portbook.settings.line_numbers import Path, Places

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
    ("path", "line"),
    [
        (("top",), 2),
        (("quoted.key",), 3),
        (("policy",), 5),
        (("policy", "domains"), 6),
        (("policy", "text"), 8),
        (("policy", "other"), 12),
        (("policy", "escaped"), 15),
        (("policy", "rules", 0), 17),
        (("policy", "rules", 0, "where"), 19),
        (("policy", "rules", 0, "where", "/a", "minimum"), 19),
        (("policy", "rules", 1), 21),
        (("policy", "rules", 1, "name"), 22),
        (("policy", "rules", 1, "where", "/x.y"), 24),
        (("http", "or.ders", "tools", "get"), 26),
        (("http", "or.ders", "tools", "get", "a", "b"), 27),
        (("http", "or.ders", "tools", "get", "missing"), 26),
        (("nowhere",), 1),
    ],
)
def test_a_key_is_found_on_its_line_or_on_that_of_what_holds_it(path: Path, line: int) -> None:
    tomllib.loads(DOCUMENT)
    assert Places(DOCUMENT).line_of(path) == line


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "a = 1", "a = [\n\n]"])
def test_a_short_document_is_read_to_its_end(text: str) -> None:
    assert Places(text).line_of(("a",)) == 1
