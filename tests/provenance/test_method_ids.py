"""Method ids: their grammar, what is reserved, and that ours keep both."""

from __future__ import annotations

import pytest

from portbook.provenance import method_ids
from portbook.provenance.method_ids import PROMISES, flaw_of

OURS = [
    getattr(method_ids, name) for name in method_ids.__all__ if isinstance(getattr(method_ids, name), str)
]


@pytest.mark.parametrize(
    "method",
    [
        *OURS,
        *PROMISES,
        "simple",
        "two.segments",
        "with_underscore.method",
        "versioned_v1_0",
        "a1.b2",
        "policies.x",
    ],
)
def test_a_method_id_keeps_the_grammar(method: str) -> None:
    assert flaw_of(method) is None


@pytest.mark.parametrize(
    "method",
    [
        "",
        "Adapter.Wrap",
        "adapter-wrap",
        "adapter.wrap-x",
        "123.method",
        "a.1b",
        "a..b",
        ".a",
        "a.",
        "a_",
        "a__b",
        "_a",
        "a._b",
        "a b",
        "a\n",
        "é",
        "a.B",
    ],
)
def test_what_breaks_either_pattern_is_no_method_id(method: str) -> None:
    assert "is not a method id" in (flaw_of(method) or "")


@pytest.mark.parametrize("first", ["policy", "attestation", "execution", "audit"])
def test_four_first_words_are_reserved(first: str) -> None:
    for method in (first, f"{first}.check", f"{first}.a.b_c"):
        assert f"starts with {first}, which is reserved" in (flaw_of(method) or "")
    assert flaw_of(f"engine.{first}") is None
