"""Anchors: how they are written, and whether they lead to something."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.provenance.anchors import Anchor, Evidence, anchor_at, parse_anchor, resolves


@pytest.mark.parametrize(
    ("source", "anchor"),
    [
        ("artifact:a", Anchor("a")),
        ("artifact:sha256:00ff", Anchor("sha256:00ff")),
        ("artifact:reports/a b.json", Anchor("reports/a b.json")),
        ("artifact:a#json:", Anchor("a", "")),
        ("artifact:a#json:/fix/0", Anchor("a", "/fix/0")),
        ("artifact:a#json:/~0~1//#json:/x", Anchor("a", "/~0~1//#json:/x")),
        ("artifact:a#text:line:12", Anchor("a", lines=(12, 12))),
        ("artifact:a#text:line:12-14", Anchor("a", lines=(12, 14))),
    ],
)
def test_an_anchor_is_read(source: str, anchor: Anchor) -> None:
    assert parse_anchor(source) == anchor


@pytest.mark.parametrize(
    "source",
    [
        "",
        "a",
        "artifact:",
        "artifact:#json:/a",
        "Artifact:a",
        "artifact:a#",
        "artifact:a#json",
        "artifact:a#json:x",
        "artifact:a#json:/~",
        "artifact:a#json:/~2",
        "artifact:a#text:",
        "artifact:a#text:line:",
        "artifact:a#text:line:0",
        "artifact:a#text:line:01",
        "artifact:a#text:line:3-2",
        "artifact:a#text:line:-1",
        "artifact:a#text:line:1-",
        "artifact:a#text:line:1234567890",
        "artifact:a#text:line:1\n",
        " artifact:a",
        "artifact:a#xml:/a",
    ],
)
def test_what_is_no_anchor_is_none(source: str) -> None:
    assert parse_anchor(source) is None


TREE: Any = {"fix": ["a", {"b": None}], "": {"~/": 1}, "0": 0}


@pytest.mark.parametrize(
    ("fragment", "content", "verdict"),
    [
        ("", TREE, True),
        ("#json:", None, True),
        ("#json:/fix", TREE, True),
        ("#json:/fix/1/b", TREE, True),
        ("#json:/", TREE, True),
        ("#json://~0~1", TREE, True),
        ("#json:/0", TREE, True),
        ("#json:/fix/2", TREE, False),
        ("#json:/fix/-", TREE, False),
        ("#json:/fix/01", TREE, False),
        ("#json:/fix/1/b/c", TREE, False),
        ("#json:/fix/0/0", TREE, False),
        ("#json:/no", TREE, False),
        ("#json:/0", "text", False),
        ("#text:line:1", "", True),
        ("#text:line:2", "one\ntwo\n", True),
        ("#text:line:1-2", "one\ntwo", True),
        ("#text:line:3", "one\ntwo\n", False),
        ("#text:line:2", "one\x0btwo\u2028three", False),
        ("#text:line:1", TREE, False),
    ],
)
def test_an_anchor_leads_to_something_or_not(fragment: str, content: Any, verdict: bool) -> None:
    anchor = parse_anchor(f"artifact:a{fragment}")
    assert anchor is not None
    assert resolves(anchor, content) is verdict


@given(st.recursive(st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=4), inner)))
def test_every_part_of_a_value_has_an_anchor_that_leads_to_it(value: Any) -> None:
    def pointers(part: Any) -> Any:
        yield ""
        parts = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for name, below in parts:
            for rest in pointers(below):
                yield f"/{str(name).replace('~', '~0').replace('/', '~1')}{rest}"

    for pointer in pointers(value):
        anchor = parse_anchor(anchor_at("a", pointer))
        assert anchor is not None
        assert resolves(anchor, value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"field": "", "source": "x"}, "field: must have 1 to 200 characters"),
        ({"field": "x", "source": "x" * 1001}, "source: must have 1 to 1000 characters"),
        ({"field": "x", "source": "x", "method": ""}, "method: must have 1 to 200 characters"),
        ({"field": "x", "source": "x", "note": "x" * 401}, "note: must have 0 to 400 characters"),
    ],
)
def test_evidence_that_no_schema_allows_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Evidence(**given)


def test_evidence_is_written_with_what_is_known_of_it() -> None:
    assert Evidence("f", "artifact:a").to_json() == {
        "schema_version": "evidence.v0.1",
        "field": "f",
        "source": "artifact:a",
    }
    assert Evidence("f", "artifact:a", "m", "n").to_json() | {} == {
        "schema_version": "evidence.v0.1",
        "field": "f",
        "source": "artifact:a",
        "method": "m",
        "note": "n",
    }
