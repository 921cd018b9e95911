"""YAML 1.2 as JSON values, and the aliases that must not fill all memory."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.apis.openapi.yaml_reader import NotYAML, parse_yaml

TRAPS: list[tuple[str, Any]] = [
    ("a: NO", {"a": "NO"}),
    ("a: [on, off, yes, no, y]", {"a": ["on", "off", "yes", "no", "y"]}),
    ("18_24: 18_24", {"18_24": "18_24"}),
    ("a: 2024-01-01", {"a": "2024-01-01"}),
    ("a: 12:30:00", {"a": "12:30:00"}),
    ("a: 0777", {"a": 777}),
    ("a: 0o17", {"a": 15}),
    ("200: {404: x}", {"200": {"404": "x"}}),
    ("true: 1\nnull: 2", {"true": 1, "null": 2}),
    ("a: 1.0", {"a": 1.0}),
    ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
    ("a: &x {b: 1}\nc:\n  <<: *x\n  d: 2", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
    ("c:\n  <<: [{b: 1, e: 5}, {b: 2, d: 3}]\n  e: 6", {"c": {"b": 1, "d": 3, "e": 6}}),
    ("a: !!str 5", {"a": "5"}),
    ("a: |-\n  *x* &y", {"a": "*x* &y"}),
    ('{"a": [1, null, true]}', {"a": [1, None, True]}),
    ("a: [.nan, -.inf, .INF, 1e999]", {"a": [None, None, None, None]}),
    ("a: !secret x\nb: !part {c: !!binary aGk=}", {"a": "x", "b": {"c": "aGk="}}),
    ("a: !!timestamp 2024-01-01", {"a": "2024-01-01"}),
    ("!!python/object/apply:os.system ['true']", ["true"]),
    ("!name a: 1\n.nan: 2", {"a": 1, "nan": 2}),
    ("a: !!int 0x1F\nb: !!int seven\nc: !!str 5", {"a": 31, "b": "seven", "c": "5"}),
    ("# c\n\n---\na: !!float 1e999\nb: !!null x\nc: !!bool true\n", {"a": None, "b": "x", "c": True}),
    ("%YAML 1.2\n---\na: !!bool yes\nb: !!binary aGk=", {"a": "yes", "b": "aGk="}),
    ("!!int 0x1: !!int 0x1\n1: 2", {"0x1": 1, "1": 2}),
    (r'a: "\ud83d\ude00"', {"a": "😀"}),
    (r'a: "x\uD800y"' + "\nb: '\\n'", {"a": "x\ufffdy", "b": "\\n"}),
    ("a: !!int ...", {"a": "..."}),
    ('a: !!int "---"\nb: !!null "-"\nc: !!int seven', {"a": "---", "b": "-", "c": "seven"}),
    (r'a: "\ud83d\ude00"' + "\n" + r"b: '^[^\ud800-\udfff]*$'", {"a": "😀", "b": r"^[^\ud800-\udfff]*$"}),
    (r'a: "\ud83d\ude00"' + "\n" + r'b: "^[^\\ud800-\\udfff]*$"', {"a": "😀", "b": r"^[^\ud800-\udfff]*$"}),
    (r'a: "\\\uD83D\uDE00"' + "\n" + r"b: \\\ud83d\ude00", {"a": "\\😀", "b": r"\\\ud83d\ude00"}),
    ('"\\ud83d\\ude00": |-\n  "\\ud83d', {"😀": '"\\ud83d'}),
    ('a: "\\ud83d\\\n  \\ude00"', {"a": "😀"}),
    ('a: "\\ude00\\ud83d"\nb: "\ue000\\uE001\\U0000e002"', {"a": "\ufffd\ufffd", "b": "\ue000\ue001\ue002"}),
    ("1.10: a\n012: b\n0x10: c\n1e3: d", {"1.1": "a", "12": "b", "16": "c", "1000.0": "d"}),
]


@pytest.mark.parametrize(("text", "expected"), TRAPS)
def test_values_are_those_of_yaml_1_2(text: str, expected: Any) -> None:
    found = parse_yaml(text.encode())
    assert (found, repr(found)) == (expected, repr(expected))


@pytest.mark.parametrize(
    "text",
    [
        "a: [", "? [a]\n: b", "? !x {a: 1}\n: b",
        "a: 1\n---\nb: 2", "1: a\n'1': b", "&a [*a]", "a: *none", "\xff", "[" * 1000,
        '"\\ud83d"\n# ' + "".join(f"\\ue0{number:02x}" for number in range(64)),
    ],
)  # fmt: skip
def test_what_json_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(NotYAML):
        parse_yaml(text.encode("latin-1"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n b: 2\n", "not YAML 1.2 (line 2, column 3)"),
        ("a: !!int 0x1\nb: [secret\nc: }", "not YAML 1.2 (line 3, column 2)"),
    ],
)
def test_an_error_says_where_it_is_and_quotes_nothing(text: str, message: str) -> None:
    with pytest.raises(NotYAML) as caught:
        parse_yaml(text.encode())
    assert str(caught.value) == message


def flow(lines: str) -> str:
    """The same in one mapping of JSON's form, whose quoted keys need no space after their colon."""
    return "{" + lines.replace("k0: ", '"k0": ', 1) + '"z":1}'


def doubling(shape: str) -> str:
    """A few lines of YAML that mean 9^12 values."""
    lines = ["k0: &a0 [x]\n"]
    lines += [shape.format(n=n, aliases="@".join([f"*a{n - 1}"] * 9)) for n in range(1, 13)]
    return "".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        doubling("k{n}: &a{n} [{aliases}]\n").replace("@", ", "),
        doubling("k{n}: &a{n}\n- {aliases}\n").replace("@", "\n- "),
        doubling("k{n}: &a{n}\n  - {aliases}\n").replace("@", "\n  - "),
        doubling("k{n}:\n  &a{n}\n  - {aliases}\n").replace("@", "\n  - "),
        doubling("k{n}: &a{n} [\n {aliases}\n ]\n").replace("@", ",\n "),
        doubling("k{n}: &a{n} {{\n x: [{aliases}]}}\n").replace("@", ", "),
        doubling("k{n}: &a{n} !!seq [{aliases}]\n").replace("@", ", "),
        "{"
        + doubling('"k{n}":&a{n} [{aliases}],\n').replace("@", ", ").replace("k0: ", '"k0": ', 1)
        + '"z":1}',
    ],
)
def test_aliases_that_expand_beyond_all_memory_are_refused_before_they_are_read(text: str) -> None:
    with pytest.raises(NotYAML, match="aliases expand"):
        parse_yaml(text.encode())


def test_many_aliases_of_small_things_are_fine() -> None:
    shared = "".join(f"  s{n}: &s{n}\n    type: string\n    title: t\n" for n in range(100))
    uses = "".join(f"  u{n}: *s{n % 100}\n" for n in range(1000))
    found = parse_yaml(f"shared:\n{shared}used:\n{uses}".encode())
    assert isinstance(found, dict)
    used = found["used"]
    assert isinstance(used, dict)
    assert used["u999"] == {"type": "string", "title": "t"}
