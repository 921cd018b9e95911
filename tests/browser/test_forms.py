"""Forms made of schemas: what they read is what was written, for every kind of schema that tools have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser import visit
from support.console_world import ConsoleServer

POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
    "required": ["x", "y"],
    "title": "Point",
}
CIRCLE = {
    "type": "object",
    "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
    "required": ["kind", "r"],
}
SQUARE = {
    "type": "object",
    "properties": {"kind": {"const": "square"}, "a": {"type": "number"}},
    "required": ["kind", "a"],
}
TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "leaves": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
    },
    "required": ["name"],
}

INHERITED = {
    "type": "object",
    "properties": {"constructor": {"type": "string"}, "toString": {"type": "integer"}, "valueOf": POINT},
}

# A property's schema, whether it is required, and a value.
CASES: dict[str, tuple[Any, bool, Any]] = {
    "text": ({"type": "string"}, True, "a\nb"),
    "empty text": ({"type": "string"}, True, ""),
    "integer": ({"type": "integer"}, True, -7),
    "number": ({"type": "number"}, False, 0.25),
    "zero": ({"type": "number", "default": 5}, False, 0),
    "true": ({"type": "boolean"}, False, True),
    "false": ({"type": "boolean"}, True, False),
    "choice of texts": ({"enum": ["red", "green"]}, True, "green"),
    "choice with an invisible character": ({"enum": ["a", "a\u200b"]}, True, "a\u200b"),
    "choice of anything": ({"enum": [1, "1", None, True]}, False, None),
    "constant": ({"const": 3}, True, 3),
    "list of texts": ({"type": "array", "items": {"type": "string"}}, True, ["a", "", "c"]),
    "empty list": ({"type": "array", "items": {"type": "string"}}, True, []),
    "list of lists": ({"type": "array", "items": {"type": "array", "items": {}}}, True, [[1], ["a"]]),
    "list of anything": ({"type": "array"}, True, [1, {"a": None}]),
    "object": (POINT, True, {"x": 1, "y": 2}),
    "object with names that every object has": (INHERITED, True, {"toString": 1}),
    "optional object": (POINT, False, {"x": 1, "y": 2}),
    "object by reference": ({"$ref": "#/$defs/Point"}, True, {"x": 1, "y": 2}),
    "escaped reference": ({"$ref": "#/$defs/a~1b%25"}, True, 4),
    "reference to a reference": ({"$ref": "#/$defs/Again"}, False, {"x": 1, "y": 2}),
    "schema that contains itself": (
        {"$ref": "#/$defs/Tree"},
        True,
        {"name": "a", "leaves": [{"name": "b", "leaves": [{"name": "c"}]}]},
    ),
    "one of two objects": ({"oneOf": [CIRCLE, SQUARE]}, True, {"kind": "square", "a": 2}),
    "any of two types": ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, True, "seven"),
    "list of types": ({"type": ["string", "integer"]}, True, 7),
    "null or text, given": ({"type": ["string", "null"]}, False, "a"),
    "null, required": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True, None),
    "all of": (
        {"allOf": [POINT, {"properties": {"z": {"type": "number"}}}]},
        True,
        {"x": 1, "y": 2, "z": 3},
    ),
    "object without properties": ({"type": "object"}, True, {"any": ["thing"]}),
    "map": ({"type": "object", "additionalProperties": {"type": "integer"}}, False, {"a": 1}),
    "no schema": ({}, True, {"a": [1]}),
    "true as a schema": (True, True, "text"),
    "name with a slash": ({"type": "string"}, True, "a"),
}
DEFINITIONS = {"Point": POINT, "Again": {"$ref": "#/$defs/Point"}, "Tree": TREE, "a/b%": {"type": "integer"}}


@pytest.fixture(scope="module")
def modules(browser: Browser, server: ConsoleServer) -> Iterator[Page]:
    """A page that can import the modules of the console."""
    with visit(browser, server.url, bypass_csp=True) as visited:
        page = visited.open()
        expect(page.locator("h1")).to_be_visible()
        page.evaluate(
            """async () => {
              const files = document.querySelector("script[src]").src.replace("main.js", "");
              window.form = await import(files + "form.js");
            }"""
        )
        yield page


def schema_of(part: Any, is_required: bool) -> dict[str, Any]:
    required = ["a/b"] if is_required else []
    return {"type": "object", "properties": {"a/b": part}, "required": required, "$defs": DEFINITIONS}


@pytest.mark.parametrize("name", CASES)
def test_a_form_reads_what_was_written(modules: Page, name: str) -> None:
    part, is_required, value = CASES[name]
    read = modules.evaluate(
        "([schema, value]) => { const made = form.formOf(schema); made.write(value); return made.read(); }",
        [schema_of(part, is_required), {"a/b": value}],
    )
    assert read == {"a/b": value}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[0] is not True])
def test_what_is_optional_and_not_given_is_left_out(modules: Page, name: str) -> None:
    part = CASES[name][0]
    read = modules.evaluate("(schema) => form.formOf(schema).read()", schema_of(part, is_required=False))
    assert read == ({"a/b": 3} if "const" in part else {})  # a constant has nothing to leave out
