"""Names of tools: each derived from the declared one alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.tools.tool_names import canonical_name, is_declarable, is_slug, listed_name

DECLARED = st.from_regex(r"[A-Za-z0-9_.\-]{1,128}", fullmatch=True)


@pytest.mark.parametrize(
    ("declared", "canonical", "listed"),
    [
        ("add", "add", "add"),
        ("docs.search", "docs.search", "docs__search"),
        ("a..b", "a..b", "a____b"),
        ("createIssue", "createissue_7sqobj1ih5", "createIssue"),
        ("create-issue", "create_issue_wcokszu0ka", "create-issue"),
        ("Orders.createIssue", "orders.createissue_sqfai4tvl0", "Orders__createIssue"),
        ("a." + "b" * 61, "a." + "b" * 61, "a__" + "b" * 61),
        ("a." + "b" * 100, "a." + "b" * 100, "rv3sdnjjc5" + "b" * 54),
    ],
)
def test_the_names_of_a_tool(declared: str, canonical: str, listed: str) -> None:
    assert (canonical_name(declared), listed_name(declared)) == (canonical, listed)


@given(DECLARED)
def test_every_declared_name_has_a_canonical_and_a_listed_one(declared: str) -> None:
    canonical = canonical_name(declared)
    assert is_slug(canonical)
    assert canonical_name(canonical) == canonical
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", listed_name(declared))


@given(DECLARED, DECLARED)
def test_different_names_have_different_canonical_ones(one: str, other: str) -> None:
    assert (canonical_name(one) == canonical_name(other)) == (one == other)


@pytest.mark.parametrize("name", ["", "a b", "größe", "a/b", "<lambda>", "a" * 129, "a\n"])
def test_other_names_cannot_be_declared(name: str) -> None:
    assert not is_declarable(name)
