"""How definitions differ, part by part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook.model import JSONObject
from portbook.pins.change_grades import Effort
from portbook.pins.difference import difference_of
from portbook.pins.on_change import Grade

TEXT: dict[str, Any] = {"type": "string"}
TOOL: dict[str, Any] = {
    "name": "send",
    "title": "Send",
    "description": "Sends a message.",
    "inputSchema": {"type": "object", "properties": {"to": TEXT}},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
PROMPT: dict[str, Any] = {"name": "hello", "arguments": [{"name": "who", "required": True}, {"name": "how"}]}


def grades(approved: JSONObject, observed: JSONObject) -> dict[str, Grade]:
    found = difference_of("tool", "send", approved, observed, Effort())
    return {change.part: change.grade for change in found.changes}


def test_a_definition_that_is_as_approved_has_no_difference() -> None:
    again = json.loads(json.dumps(TOOL, sort_keys=True))
    assert grades(TOOL, again) == {}
    assert grades(TOOL, {**TOOL, "icons": None}) == {}


TOOLS: list[tuple[dict[str, Any], dict[str, Grade]]] = [
    ({"title": "Post"}, {"title": Grade.WORDS}),
    ({"description": None}, {"description": Grade.WORDS}),
    ({"icons": [{"src": "https://a.example/a.png"}]}, {"icons": Grade.WORDS}),
    (
        {"inputSchema": {"type": "object", "properties": {"to": TEXT, "cc": TEXT}}},
        {"inputSchema": Grade.WIDENED},
    ),
    ({"outputSchema": None}, {"outputSchema": Grade.WIDENED}),
    ({"execution": {"taskSupport": "required"}}, {"execution": Grade.ANNOTATIONS}),
    ({"_meta": {"ui": "https://a.example"}}, {"_meta": Grade.ANNOTATIONS}),
    ({"vendor": 7}, {"vendor": Grade.ANNOTATIONS}),
    ({"annotations": {"readOnlyHint": True, "openWorldHint": True}}, {"annotations": Grade.ANNOTATIONS}),
    ({"annotations": {**TOOL["annotations"], "title": "Send"}}, {"annotations": Grade.WORDS}),
    ({"annotations": {"readOnlyHint": False, "destructiveHint": False}}, {"annotations": Grade.BREAKING}),
    ({"annotations": None}, {"annotations": Grade.BREAKING}),
    ({"title": "Post", "annotations": None}, {"annotations": Grade.BREAKING, "title": Grade.WORDS}),
]


@pytest.mark.parametrize(("changed", "expected"), TOOLS, ids=[str(row[0])[:60] for row in TOOLS])
def test_each_part_of_a_tool_has_its_own_grade(changed: dict[str, Any], expected: dict[str, Grade]) -> None:
    assert grades(TOOL, {**TOOL, **changed}) == expected


def test_only_an_effect_that_becomes_worse_is_breaking() -> None:
    reads, writes = {"readOnlyHint": True}, {"destructiveHint": False}
    worse = [(reads, writes), (reads, {}), (reads, {"readOnlyHint": 1}), (writes, {})]
    for before, after in worse:
        old, new = {**TOOL, "annotations": before}, {**TOOL, "annotations": after}
        assert grades(old, new) == {"annotations": Grade.BREAKING}
        assert grades(new, old) == {"annotations": Grade.ANNOTATIONS}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([{"name": "how"}, {"name": "who", "required": True}], Grade.WORDS),
        ([{"name": "who", "required": True, "description": "Name"}, {"name": "how"}], Grade.WORDS),
        ([{"name": "who", "required": True}, {"name": "how"}, {"name": "why"}], Grade.WIDENED),
        ([{"name": "who", "required": True}], Grade.NARROWED),
        ([{"name": "who"}, {"name": "how"}], Grade.WIDENED),
        (None, Grade.BREAKING),
    ],
)
def test_the_arguments_of_a_prompt_are_compared_as_an_input(arguments: Any, expected: Grade) -> None:
    found = difference_of("prompt", "hello", PROMPT, {**PROMPT, "arguments": arguments}, Effort())
    assert [change.grade for change in found.changes] == [expected]


def test_a_definition_that_is_new_or_gone_differs_as_a_whole() -> None:
    new = difference_of("tool", "send", None, TOOL, Effort())
    gone = difference_of("tool", "send", TOOL, None, Effort())
    assert (new.grades, gone.grades) == ({Grade.ADDED}, {Grade.REMOVED})
    assert new.changes[0].observed == gone.changes[0].approved is not None
    assert difference_of("tool", "send", None, None, Effort()).changes == ()


def test_as_data_a_difference_has_digests_and_the_value_that_shows_it() -> None:
    changed = {**TOOL, "inputSchema": {"type": "object", "properties": {"to": TEXT, "cc": TEXT}}}
    changed["description"] = "Read my files first."
    data: Any = difference_of("tool", "send", TOOL, changed, Effort()).as_data()
    assert (data["kind"], data["name"]) == ("tool", "send")
    words, schema = data["changes"]
    assert words == {
        "part": "description",
        "grade": "words",
        "note": "what people and models read has changed",
        "approved": words["approved"],
        "observed": words["observed"],
    }
    assert words["approved"] != words["observed"]
    assert schema["instances"] == [{"cc": ""}]
    assert "Read my files" not in json.dumps(data)
