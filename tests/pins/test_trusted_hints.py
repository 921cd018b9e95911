"""Hints of servers: stricter at once, looser only when approved."""

from __future__ import annotations

import pytest

from portbook.model import JSONObject
from portbook.pins.trusted_hints import harm_of, with_trusted_hints

READS: JSONObject = {"readOnlyHint": True}
WRITES: JSONObject = {"destructiveHint": False}
DESTROYS: JSONObject = {"destructiveHint": True}


@pytest.mark.parametrize(
    ("hints", "harm"),
    [
        (READS, 0),
        ({**READS, "destructiveHint": True}, 0),
        (WRITES, 1),
        ({"readOnlyHint": "yes", "destructiveHint": 0}, 2),
        (DESTROYS, 2),
        ({}, 2),
        (None, 2),
    ],
)
def test_the_effect_of_hints_is_that_of_mcps_defaults(hints: JSONObject | None, harm: int) -> None:
    assert harm_of(hints) == harm


@pytest.mark.parametrize(
    ("approved", "observed", "trusted"),
    [
        (READS, READS, 0),
        (READS, WRITES, 1),
        (READS, None, 2),
        (WRITES, READS, 1),
        (DESTROYS, READS, 2),
        ({}, WRITES, 2),
        (WRITES, DESTROYS, 2),
    ],
)
def test_an_effect_is_the_worse_of_the_approved_and_the_observed(
    approved: JSONObject, observed: JSONObject | None, trusted: int
) -> None:
    parts: JSONObject = {"title": "T", "annotations": observed}
    found = with_trusted_hints(parts, {"annotations": approved})
    assert harm_of(found["annotations"]) == trusted
    assert found["title"] == "T"


def test_what_was_never_approved_is_destructive_and_keeps_its_other_hints() -> None:
    observed: JSONObject = {"annotations": {**READS, "openWorldHint": False, "title": "T"}}
    assert with_trusted_hints(observed, None) == {"annotations": {"openWorldHint": False, "title": "T"}}
