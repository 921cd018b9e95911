"""The shape of a definition: what nothing can be done with is named with its place."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.upstreams.listed_definitions import problem_in, without_nulls

TOOL: dict[str, Any] = {"name": "t", "inputSchema": {}}


@pytest.mark.parametrize(
    ("definition", "place"),
    [
        ({**TOOL, "name": 5}, "/name"),
        ({**TOOL, "inputSchema": []}, "/inputSchema"),
        ({"name": "t"}, "/inputSchema"),
        ({**TOOL, "annotations": []}, "/annotations"),
        ({**TOOL, "description": 5}, "/description"),
        ({**TOOL, "arguments": 5}, "/arguments"),
        ({**TOOL, "arguments": ["x"]}, "/arguments/0"),
        ({**TOOL, "arguments": [{"name": "a"}, {}]}, "/arguments/1"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place(definition: dict[str, Any], place: str) -> None:
    problem = problem_in(definition, "name", is_tool=True)
    assert problem is not None
    assert problem.startswith(place + ":")


def test_what_is_odd_but_usable_is_no_problem() -> None:
    assert problem_in({**TOOL, "surprise": 5, "annotations": {"readOnlyHint": "x"}}, "name") is None


def test_a_part_that_is_null_is_a_part_that_is_missing() -> None:
    assert without_nulls({"name": "t", "description": None, "own": None}) == {"name": "t", "own": None}
    whole: dict[str, Any] = {"name": "t", "description": "d"}
    assert without_nulls(whole) is whole
