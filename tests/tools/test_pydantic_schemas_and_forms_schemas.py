"""Schemas from types: what has none is refused, and what JSON cannot hold stays out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import Field

from portbook.tools.mistake_place import shown_file
from portbook.tools.spec import BadTool
from support.served_functions import case, serve


@pytest.mark.parametrize(
    "default",
    [
        case("an object", object()),
        case("NaN", float("nan")),
        case("infinity", float("inf")),
        case("a lone surrogate", "\ud800"),
        case("a function", len),
    ],
)
def test_a_default_that_json_cannot_hold_stays_out_of_the_schema_and_still_applies(default: Any) -> None:
    got: list[Any] = []

    def function(value: Any = default) -> None:
        got.append(value)

    tool = serve(function)
    assert tool.spec.input_schema["properties"] == {"value": {}}
    tool.spec.function({})
    assert repr(got) == repr([default])


def unknown_hint(value: Unwritten) -> None: ...  # type: ignore[name-defined] # noqa: F821 - on purpose


def callable_hint(value: Callable[[int], int]) -> None: ...


def class_hint(value: Opaque) -> None: ...


def result_hint() -> Opaque: ...


def lookahead(value: Annotated[str, Field(pattern="(?=a)a")]) -> None: ...


class Opaque:
    pass


@pytest.mark.parametrize(
    ("function", "said"),
    [
        case("a name that is not there", unknown_hint, "name 'Unwritten' is not defined; import"),
        case("a function", callable_hint, "Callable has no JSON Schema; use a plain type"),
        case("some class", class_hint, "Opaque has no JSON Schema; use"),
        case("some class as a result", result_hint, "Opaque"),
        case("a pattern with lookahead", lookahead, "look-around"),
    ],
)
def test_a_type_hint_that_makes_no_schema_is_refused_with_place_and_reason(
    function: Callable[..., Any], said: str
) -> None:
    with pytest.raises(BadTool) as raised:
        serve(function)
    line = function.__code__.co_firstlineno  # type: ignore[attr-defined]
    place = f"{shown_file(__file__)}:{line}:1: function {function.__name__}"
    first, _, rest = str(raised.value).partition(": no schema can be generated from its type hints: ")
    assert first == place
    assert said in rest
    assert rest
    assert "\n" not in rest
    assert "pydantic-core" not in rest
