"""Arguments that are repeated in headers: which marks of a schema count, and when the two agree."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.protocol.mirrored_headers import BadMark, marked_params, refuse_params
from portbook.tools.catalog import Catalog
from portbook.tools.spec import BadTool, Effect, ToolSpec


def marked(suffix: object, kind: object = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": suffix}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SCHEMA = an_object(
    region=marked("Region"),
    count=marked("Count", "integer"),
    dry=marked("Dry", "boolean"),
    place=an_object(zone=an_object(name=marked("Zone"))),
    other={"type": "string"},
)


def test_marks_are_found_wherever_properties_alone_lead() -> None:
    found = {mark.path: mark.suffix for mark in marked_params(SCHEMA)}
    assert found == {
        ("region",): "Region",
        ("count",): "Count",
        ("dry",): "Dry",
        ("place", "zone", "name"): "Zone",
    }


def test_what_is_data_to_a_schema_is_no_mark() -> None:
    example = {"x-mcp-header": "Region"}
    assert marked_params(an_object(a={"default": example, "examples": [example], "const": example})) == ()


# Arguments, headers, and the header that does not agree with them.
AGREEMENTS: dict[str, tuple[dict[str, Any], dict[str, str], str | None]] = {
    "nothing on either side": ({}, {}, None),
    "a text": ({"region": "eu"}, {"region": "eu"}, None),
    "another text": ({"region": "eu"}, {"region": "us"}, "Mcp-Param-Region"),
    "a text like a number is a text": ({"region": "42"}, {"region": "42.0"}, "Mcp-Param-Region"),
    "null is nothing": ({"region": None}, {}, None),
    "a header for nothing": ({}, {"region": "eu"}, "Mcp-Param-Region"),
    "nothing in the header": ({"region": "eu"}, {}, "Mcp-Param-Region"),
    "an integer": ({"count": 42}, {"count": "42"}, None),
    "an integer with a fraction of nothing": ({"count": 42}, {"count": "42.0"}, None),
    "a whole number": ({"count": 42.0}, {"count": "42"}, None),
    "another integer": ({"count": 42}, {"count": "43"}, "Mcp-Param-Count"),
    "a fraction": ({"count": 42}, {"count": "42.5"}, "Mcp-Param-Count"),
    "an exponent": ({"count": 100}, {"count": "1e2"}, "Mcp-Param-Count"),
    "beyond what a double holds": ({"count": 2**60 + 1}, {"count": str(2**60)}, "Mcp-Param-Count"),
    "more digits than anybody needs": ({"count": 1}, {"count": "1" * 10_000}, "Mcp-Param-Count"),
    "a boolean": ({"dry": True}, {"dry": "true"}, None),
    "a boolean in another spelling": ({"dry": True}, {"dry": "True"}, "Mcp-Param-Dry"),
    "a boolean is no number": ({"count": True}, {"count": "1"}, "Mcp-Param-Count"),
    "deep inside": ({"place": {"zone": {"name": "a"}}}, {"zone": "a"}, None),
    "deep inside, another": ({"place": {"zone": {"name": "a"}}}, {"zone": "b"}, "Mcp-Param-Zone"),
    "deep inside, left out": ({"place": {"zone": {"name": "a"}}}, {}, "Mcp-Param-Zone"),
    "deep inside of nothing": ({"place": 1}, {"zone": "a"}, "Mcp-Param-Zone"),
}


@pytest.mark.parametrize("case", AGREEMENTS)
def test_headers_say_what_the_arguments_say(case: str) -> None:
    arguments, sent, wrong = AGREEMENTS[case]
    headers = {f"mcp-param-{name}": value for name, value in sent.items()}
    refusal = refuse_params(headers, marked_params(SCHEMA), arguments)
    assert (None if refusal is None else refusal.details["header"]) == wrong


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "on an object": (an_object(a={**an_object(), "x-mcp-header": "A"}), "/properties/a"),
    "on an array": (an_object(a=marked("A", "array")), "/properties/a"),
    "on a number": (an_object(a=marked("A", "number")), "/properties/a"),
    "on null": (an_object(a=marked("A", "null")), "/properties/a"),
    "on several types": (an_object(a=marked("A", ["string", "null"])), "/properties/a"),
    "on no type": (an_object(a={"x-mcp-header": "A"}), "/properties/a"),
    "empty": (an_object(a=marked("")), "/properties/a"),
    "with a space": (an_object(a=marked("My Region")), "/properties/a"),
    "with a colon": (an_object(a=marked("Region:1")), "/properties/a"),
    "with a line break at its end": (an_object(a=marked("Region\n")), "/properties/a"),
    "beyond ASCII": (an_object(a=marked("Région")), "/properties/a"),
    "no text": (an_object(a=marked(1)), "/properties/a"),
    "twice": (an_object(a=marked("A"), b=marked("A")), "/properties/"),
    "twice in another case": (an_object(a=marked("Ab"), b=an_object(c=marked("aB"))), "/properties/"),
    "on the root": ({**an_object(), "x-mcp-header": "A"}, "(root)"),
    "on items": (an_object(a={"type": "array", "items": marked("A")}), "/properties/a/items"),
    "in an alternative": (an_object(a={"anyOf": [marked("A")]}), "/properties/a/anyOf/0"),
    "in a definition": ({**an_object(), "$defs": {"X": an_object(a=marked("A"))}}, "/$defs/X/properties/a"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mark_that_no_client_could_heed_is_refused_at_the_start(case: str) -> None:
    schema, place = BAD[case]
    with pytest.raises(BadMark, match=r"x-mcp-header") as caught:
        marked_params(schema)
    assert str(caught.value).startswith(place)
    spec = ToolSpec("a_tool", "", schema, True, Effect.READ, function=lambda given: None)
    with pytest.raises(BadTool, match=r"tool 'a_tool', input schema: .*x-mcp-header"):
        Catalog([spec])
