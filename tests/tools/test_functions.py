"""A tool's contract from a function's type hints: what callers may send, and what becomes of results."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import enum
import functools
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional, Union

import pydantic
import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from typing_extensions import TypedDict

from portbook import Image
from portbook.canonical import NotJSON, json_bytes
from portbook.errors import Ending, Failed, Finding, Reason, Refused
from portbook.schema.json_schema_drafts import DIALECT
from portbook.tools.catalog import Tool
from portbook.tools.mistake_place import shown_file
from portbook.tools.spec import BadTool
from support.served_functions import case, serve

CANARY = "canary-4711"


def call(function: Callable[..., Any], arguments: Any) -> Any:
    """What a caller gets: the checks of the pipeline around the function."""
    tool = serve(function)
    assert tool.input.findings(arguments) == ()
    result = tool.spec.function(arguments)
    assert tool.output.findings(result) == ()
    return json.loads(json_bytes(result))


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict):
    depth: int
    note: NotRequired[str]


class Item(BaseModel):
    sku: str
    count: int = 1


class Order(BaseModel):
    items: list[Item]
    customer: Customer  # stands further down


class Customer(BaseModel):
    name: str


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


NOON = "2026-01-02T12:00:00Z"
AT_NOON = dt.datetime.fromisoformat(NOON)

# A type hint, values that its schema allows with what the function then gets, and values it does not allow.
HINTS = [
    case("str", str, [("a", "a"), ("", "")], [1, None, ["a"]]),
    case("int", int, [(1, 1), (1.0, 1), (2**70, 2**70)], ["1", 1.5, True, None]),
    case("float", float, [(1.5, 1.5), (1, 1.0)], ["1.5", True, None]),
    case("bool", bool, [(True, True)], [1, 0, "true", None]),
    case("None", type(None), [(None, None)], [0, "", False]),
    case("list", list[int], [([], []), ([1, 2], [1, 2])], [[1, "2"], {"0": 1}, "1"]),
    case("bare list", list, [([1, "a"], [1, "a"])], [{}, "a"]),
    case("tuple", tuple[int, str], [([1, "a"], (1, "a"))], [[1], [1, "a", 2], ["a", 1]]),
    case("set", set[int], [([1, 2], {1, 2})], [[1, 1], 1]),
    case("dict", dict[str, int], [({"a": 1}, {"a": 1})], [{"a": "1"}, []]),
    case("bare dict", dict, [({"a": [1]}, {"a": [1]})], [[], "a"]),
    case("Any", Any, [(1, 1), (None, None), ({"a": []}, {"a": []})], []),
    case("Optional", Optional[int], [(1, 1), (None, None)], ["1", 1.5]),  # noqa: UP045 - as others write it
    case("a union with None", int | None, [(1, 1), (None, None)], ["1"]),
    case("Union", Union[int, str], [(1, 1), ("1", "1")], [1.5, None, True]),  # noqa: UP007 - as others do
    case("Literal", Literal["a", 1], [("a", "a"), (1, 1)], ["b", 2, True, None]),
    case("Enum", Colour, [("red", Colour.RED)], ["RED", "green", 1]),
    case("IntEnum", Level, [(1, Level.LOW)], [3, "1", True]),
    case("datetime", dt.datetime, [(NOON, AT_NOON)], ["2026-01-02", "x", 1]),
    case("date", dt.date, [("2026-01-02", dt.date(2026, 1, 2))], ["2026-02-30", NOON, 1]),
    case("UUID", uuid.UUID, [(str(uuid.UUID(int=1)), uuid.UUID(int=1))], ["1", 1]),
    case("Path", Path, [("a/b", Path("a/b"))], [1, None]),
    case("Decimal as a string", Decimal, [("1.50", Decimal("1.50")), ("-2", Decimal(-2))], [None, []]),
    case("Decimal as a number", Decimal, [(1.5, Decimal("1.5")), (2, Decimal(2))], [True]),
    case("dataclass", Point, [({"x": 1}, Point(1)), ({"x": 1, "y": 2}, Point(1, 2))], [{}, {"x": "1"}, [1]]),
    case("TypedDict", Options, [({"depth": 1}, {"depth": 1})], [{}, {"depth": 1, "note": None}]),
    case("model", Item, [({"sku": "a"}, Item(sku="a"))], [{}, {"sku": 1}, {"sku": "a", "count": "1"}]),
    case(
        "models in models", Order,
        [(
            {"items": [{"sku": "a"}], "customer": {"name": "b"}},
            Order(items=[Item(sku="a")], customer=Customer(name="b")),
        )],
        [{"items": [{}], "customer": {"name": "b"}}, {"items": [], "customer": "b"}, {"items": []}],
    ),
    case(
        "a model of itself", Tree,
        [({"value": 1, "children": [{"value": 2}]}, Tree(value=1, children=[Tree(value=2)]))],
        [{"value": 1, "children": [{"value": "2"}]}, {"value": 1, "children": {}}],
    ),
    case("a bound", Annotated[int, Field(ge=1, lt=10)], [(1, 1), (9, 9)], [0, 10]),
    case("a length", Annotated[str, Field(min_length=1, max_length=2)], [("a", "a")], ["", "abc"]),
    case("a pattern", Annotated[str, Field(pattern="^[a-z]+$")], [("a", "a")], ["A", "a1"]),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "good", "bad"), HINTS)
def test_a_type_hint_says_what_callers_may_send_and_what_the_function_gets(
    hint: Any, good: list[tuple[Any, Any]], bad: list[Any]
) -> None:
    got: list[Any] = []

    def function(value: Any) -> None:
        got.append(value)

    function.__annotations__["value"] = hint
    tool = serve(function)
    for sent, _ in good:
        assert tool.input.findings({"value": sent}) == ()
        tool.spec.function({"value": sent})
    assert got == [expected for _, expected in good]
    assert [type(value) for value in got] == [type(expected) for _, expected in good]
    assert [value for value in bad if tool.input.is_valid({"value": value})] == []


@pytest.mark.parametrize(("hint", "good"), [case(row.id, *row.values[:2]) for row in HINTS])
def test_what_a_function_got_it_can_return(hint: Any, good: list[tuple[Any, Any]]) -> None:
    def function(value: Any) -> Any:
        return value

    function.__annotations__.update({"value": hint, "return": hint})
    for sent, _ in good:
        call(function, {"value": sent})


@pytest.mark.parametrize("hint", [case(row.id, row.values[0]) for row in HINTS])
def test_every_schema_names_our_dialect_and_has_no_made_up_titles(hint: Any) -> None:
    def function(value: Any) -> Any:
        return value

    function.__annotations__.update({"value": hint, "return": hint})
    spec = serve(function).spec
    assert spec.input_schema["$schema"] == DIALECT
    assert spec.output_schema is True or spec.output_schema["$schema"] == DIALECT  # type: ignore[index]
    assert "title" not in spec.input_schema
    assert "title" not in json.loads(json_bytes(spec.input_schema))["properties"]["value"]


# ---------------------------------------------------------------------------------------------- parameters


def test_the_schema_of_the_arguments_is_closed_and_whole() -> None:
    def function(a: int, b: str = "x", *, c: bool, d: float | None = None) -> None: ...

    assert serve(function).spec.input_schema == {
        "$schema": DIALECT,
        "type": "object",
        "additionalProperties": False,
        "required": ["a", "c"],
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "string", "default": "x"},
            "c": {"type": "boolean"},
            "d": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        },
    }


def test_a_function_without_parameters_takes_an_empty_object_and_nothing_else() -> None:
    def function() -> int:
        return 1

    tool = serve(function)
    assert call(function, {}) == 1
    (finding,) = tool.input.findings({"a": 1})
    assert finding.message == 'unexpected property "a"'
    assert not tool.input.is_valid([])


def test_arguments_that_nobody_asked_for_are_refused() -> None:
    def function(a: int = 1) -> int:
        return a

    (finding,) = serve(function).input.findings({"a": 1, "b": 2})
    assert (finding.pointer, finding.message) == ("", 'unexpected property "b"')


def test_a_keyword_only_parameter_is_a_parameter_like_any_other() -> None:
    def function(*, a: int, b: int = 2) -> int:
        return a + b

    assert call(function, {"a": 1}) == 3


NAMES = [
    "schema", "copy", "json", "dict", "validate", "construct", "fields", "model_config", "model_fields",
    "model_dump", "self", "cls", "_x", "__x", "p0", "p1", "arguments", "function", "name", "class_", "ä",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_may_have_any_name(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def function({name}: int, other: int = 2) -> int:\n    return {name} * 10 + other", scope)
    assert call(scope["function"], {name: 1}) == 12
    assert call(scope["function"], {name: 1, "other": 3}) == 13
    assert not serve(scope["function"]).input.is_valid({name: "1"})


def test_all_those_names_at_once() -> None:
    scope: dict[str, Any] = {}
    parameters = ", ".join(f"{name}: int" for name in NAMES)
    exec(f"def function({parameters}) -> list:\n    return [{', '.join(NAMES)}]", scope)
    values = {name: number for number, name in enumerate(NAMES)}
    assert call(scope["function"], values) == list(range(len(NAMES)))


def function_args(*values: int) -> None: ...


def function_kwargs(**values: int) -> None: ...


def function_positional(value: int, /) -> None: ...


@pytest.mark.parametrize(
    ("function", "parameter"),
    [
        case("*args", function_args, "*values"),
        case("**kwargs", function_kwargs, "**values"),
        case("positional only", function_positional, "value"),
    ],
)
def test_a_parameter_that_cannot_be_named_is_refused_with_its_place(
    function: Callable[..., Any], parameter: str
) -> None:
    with pytest.raises(BadTool) as raised:
        serve(function)
    said = str(raised.value)
    line = function.__code__.co_firstlineno  # type: ignore[attr-defined]
    assert said.startswith(
        f"{shown_file(__file__)}:{line}:1: function {function.__name__}: parameter {parameter}"
    )
    assert said.endswith("cannot be passed by name; give each a name")


def test_a_parameter_without_a_type_hint_takes_anything() -> None:
    def function(value):  # type: ignore[no-untyped-def]
        return value

    for value in (1, None, {"a": [1.5, "b"]}):
        assert call(function, {"value": value}) == value
    assert not serve(function).input.is_valid({})


def test_a_default_applies_where_nothing_was_sent() -> None:
    def function(a: int = 5, b: str | None = None, c: Colour = Colour.BLUE, d: Point = Point(1)) -> list[Any]:  # noqa: B008 - it is what is tested
        return [a, b, c is Colour.BLUE, d.x]

    assert call(function, {}) == [5, None, True, 1]
    properties: Any = serve(function).spec.input_schema["properties"]
    assert [properties[name]["default"] for name in "abcd"] == [5, None, "blue", {"x": 1, "y": 0}]


def test_a_default_that_a_call_changes_is_fresh_for_the_next() -> None:
    def function(seen: list[int] = []) -> list[int]:  # noqa: B006 - it is what is tested
        seen.append(1)
        return seen

    tool = serve(function)
    assert [tool.spec.function({}), tool.spec.function({})] == [[1], [1]]


def test_a_field_as_a_default_is_refused_with_how_to_write_it() -> None:
    def function(value: int = Field(5, ge=1)) -> int:
        return value

    with pytest.raises(BadTool, match=r"has a Field as its default.*write value: Annotated\[\.\.\., Field"):
        serve(function)


def test_a_field_in_annotated_describes_and_bounds_its_parameter() -> None:
    def function(value: Annotated[int, Field(ge=1, description="How many.", alias="other")] = 3) -> int:
        return value

    tool = serve(function)
    assert tool.spec.input_schema["properties"] == {
        "value": {"type": "integer", "minimum": 1, "description": "How many.", "default": 3}
    }
    assert (call(function, {}), call(function, {"value": 7})) == (3, 7)
    assert not tool.input.is_valid({"other": 7})


def test_an_alias_of_a_model_is_the_name_that_callers_use() -> None:
    class Renamed(BaseModel):
        inner: int = Field(alias="outer")

    def function(value: Renamed) -> Renamed:
        assert value.inner == 1
        return value

    function.__annotations__ = {"value": Renamed, "return": Renamed}
    assert call(function, {"value": {"outer": 1}}) == {"outer": 1}
    assert not serve(function).input.is_valid({"value": {"inner": 1}})


# ------------------------------------------------------------------------------------------- bad signatures


@pytest.mark.parametrize(
    "function",
    [case("partial", functools.partial(len)), case("builtin", len), case("class", int), case("print", print)],
)
def test_what_is_not_a_function_with_names_and_hints_is_refused(function: Any) -> None:
    with pytest.raises(BadTool, match=r"^(function |tool 'tool': a tool is a function, not a class)"):
        serve(function)


def test_a_decorated_function_keeps_the_contract_of_the_one_inside() -> None:
    def loud(inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def outer(*args: Any, **kwargs: Any) -> Any:
            return inner(*args, **kwargs) + "!"

        return outer

    @loud
    def function(text: str) -> str:
        return text

    assert call(function, {"text": "a"}) == "a!"
    assert not serve(function).input.is_valid({"text": 1})


def test_a_bound_method_is_called_on_its_object() -> None:
    class Greeter:
        greeting = "hello"

        def greet(self, name: str) -> str:
            return f"{self.greeting} {name}"

    assert call(Greeter().greet, {"name": "ada"}) == "hello ada"


# ---------------------------------------------------------------------------------------- late refusals


def must_be_even(value: int) -> int:
    if value % 2:
        raise ValueError(f"{value} is odd, {CANARY}")
    return value


def known(value: str) -> str:
    assert value == "known", f"{value} is not known"
    return value


# Named for what the tests send to it.
Odd = Annotated[int, AfterValidator(must_be_even)]


class Even(BaseModel):
    value: Odd


@pytest.mark.parametrize(
    ("hint", "value", "findings"),
    [
        case("ValueError", Odd, 271829, [("/value", "value_error")]),
        case("assert", Annotated[str, AfterValidator(known)], CANARY, [("/value", "assertion_error")]),
        case("before", Annotated[str, BeforeValidator(int)], CANARY, [("/value", "value_error")]),
        case("in a model", Even, {"value": 271829}, [("/value/value", "value_error")]),
        case(
            "in a list", list[Odd], [2, 271829, 4, 271831],
            [("/value/1", "value_error"), ("/value/3", "value_error")],
        ),
        case("Decimal", Decimal, CANARY, [("/value", "decimal_parsing")]),
        case("a Decimal that is none", Decimal, "NaN", [("/value", "finite_number")]),
        case("a key", dict[int, str], {CANARY[:6]: "a"}, [("/value/canary/[key]", "int_parsing")]),
        case("a name to be escaped", dict[str, Odd], {"a/b~c": 1}, [("/value/a~1b~0c", "value_error")]),
    ],
)  # fmt: skip
def test_what_only_pydantic_refuses_is_a_refusal_without_the_value(
    hint: Any, value: Any, findings: list[tuple[str, str]]
) -> None:
    def function(value: Any) -> None:
        raise AssertionError("it was called")

    function.__annotations__["value"] = hint
    tool = serve(function)
    assert tool.input.is_valid({"value": value})
    with pytest.raises(Refused) as raised:
        tool.spec.function({"value": value})
    assert raised.value.reason is Reason.BAD_ARGUMENTS
    assert [(found.pointer, found.keyword) for found in raised.value.findings] == findings
    for found in raised.value.findings:
        assert found.message == f"not accepted ({found.keyword})"
        assert "27182" not in str(found)
        assert CANARY not in str(found)


# ------------------------------------------------------------------------------------------------ results


class Loud(BaseModel):
    value: int

    @pydantic.field_serializer("value")
    def say(self, value: int) -> str:
        raise RuntimeError(CANARY)


def a_circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


def a_deep_one() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


NO_HINT = object()


def returning(value: Any, hint: Any) -> Callable[..., Any]:
    def function() -> Any:
        return value

    function.__annotations__ = {} if hint is NO_HINT else {"return": hint}
    return function


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        case("no hint", NO_HINT, {"a": [1, None]}, {"a": [1, None]}),
        case("a model without a hint", NO_HINT, Item(sku="a"), {"sku": "a", "count": 1}),
        case("a dataclass without a hint", NO_HINT, Point(1), {"x": 1, "y": 0}),
        case("a set without a hint", NO_HINT, {1}, [1]),
        case("a datetime without a hint", NO_HINT, dt.date(2026, 1, 2), "2026-01-02"),
        case("keys without a hint", NO_HINT, {1: "a"}, {"1": "a"}),
        case("None", None, None, None),
        case("Any", Any, (1, 2), [1, 2]),
        case("a model", Item, Item(sku="a"), {"sku": "a", "count": 1}),
        case(
            "a dictionary in the place of a model", Item, {"sku": "a", "count": 2}, {"sku": "a", "count": 2}
        ),
        case("a set", set[int], {1}, [1]),
        case("an enum", Colour, Colour.RED, "red"),
        case("a decimal", Decimal, Decimal("1.50"), "1.50"),
        case("a time with its zone", dt.datetime, dt.datetime.fromisoformat(NOON), NOON),
        case("a duration", dt.timedelta, dt.timedelta(days=1), "P1D"),
        case("an integer of any size", int, 2**100, 2**100),
        case("a generator", NO_HINT, (number for number in range(3)), [0, 1, 2]),
    ],
)
def test_a_result_becomes_json_of_its_schema(hint: Any, value: Any, expected: Any) -> None:
    result = call(returning(value, hint), {})
    assert result == expected
    assert type(result) is type(expected)


def test_a_function_without_a_return_hint_may_return_anything() -> None:
    assert serve(returning(1, NO_HINT)).spec.output_schema is True


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        case("another type", int, CANARY),
        case("no number", float, float("nan")),
        case("no number, where there may be none", float | None, float("nan")),
        case("no number, without a hint", NO_HINT, {"a": float("inf")}),
        case("something instead of nothing", None, CANARY),
        case("nothing instead of something", Item, None),
        case("an object without a hint", NO_HINT, object()),
        case("an object", Item, object()),
        case("a model of something else", Item, Point(1)),
        case("a dictionary that is no such model", Item, {"sku": 1}),
        case("an item of another type", list[int], [1, CANARY]),
        case("too few items", tuple[int, str], (1,)),
        case("a dictionary that lacks a key", Options, {}),
        case("an exception", NO_HINT, ValueError(CANARY)),
        case("bytes that are not UTF-8", bytes, b"\xff"),
        case("half a character", str, "\ud800"),
        case("a circle", NO_HINT, a_circle()),
        case("a circle in a list", list[Any], a_circle()),
        case("nesting without end", NO_HINT, a_deep_one()),
        case("more digits than Python writes", int, 10**5000),
        case("a time without a zone", dt.datetime, dt.datetime(2026, 1, 2)),  # noqa: DTZ001 - the point
    ],
)
def test_a_result_that_does_not_keep_the_promise_never_passes(hint: Any, value: Any) -> None:
    assert CANARY not in repr(how_it_fails(serve(returning(value, hint))))


def test_what_a_serializer_raises_is_raised_by_the_tool() -> None:
    with pytest.raises(RuntimeError, match=CANARY):
        serve(returning(Loud(value=1), Loud)).spec.function({})


def how_it_fails(tool: Tool) -> list[Finding]:
    """What is found by the first check that a result does not pass; the last two are the pipeline's."""
    try:
        result = tool.spec.function({})
        json_bytes(result)
    except Failed as failed:
        assert failed.reason is Reason.BAD_RESULT  # noqa: PT017 - one of three ways
        findings = list(failed.findings)
    except NotJSON as error:
        findings = [Finding("", str(error), "json", "")]
    else:
        findings = list(tool.output.findings(result))
    assert findings
    return findings


def test_a_subclass_does_not_leak_what_its_hint_does_not_name() -> None:
    class WithSecret(Item):
        secret: str = CANARY

    assert call(returning(WithSecret(sku="a"), Item), {}) == {"sku": "a", "count": 1}


def test_what_a_function_raises_is_not_touched() -> None:
    def function() -> None:
        raise LookupError(CANARY)

    with pytest.raises(LookupError, match="canary"):
        serve(function).spec.function({})


def test_a_value_error_of_the_function_itself_is_no_bad_result() -> None:
    def function() -> int:
        raise ValueError(CANARY)

    with pytest.raises(ValueError, match="canary") as raised:
        serve(function).spec.function({})
    assert not isinstance(raised.value, Ending)


# ---------------------------------------------------------------------------------------------- coroutines


def test_a_coroutine_is_converted_and_finished_like_a_plain_function() -> None:
    async def function(when: dt.date) -> dt.date:
        await asyncio.sleep(0)
        return when + dt.timedelta(days=1)

    tool = serve(function)
    assert tool.spec.is_async
    assert asyncio.run(tool.spec.function({"when": "2026-01-02"})) == "2026-01-03"


def test_a_coroutine_refuses_when_it_is_awaited() -> None:
    async def function(value: Even) -> Item:
        return Item(sku="a")

    async def bad() -> int:
        return CANARY  # type: ignore[return-value]

    with pytest.raises(Refused):
        asyncio.run(serve(function).spec.function({"value": {"value": 1}}))
    tool = serve(bad)
    assert not tool.output.is_valid(asyncio.run(tool.spec.function({})))


def test_hints_may_name_what_stands_further_down() -> None:
    def function(value: FurtherDown) -> FurtherDown:
        return value

    assert call(function, {"value": {"n": 1}}) == {"n": 1}


class FurtherDown(BaseModel):
    n: int


# ------------------------------------------------------------------------------------------------- content


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        case("no hint", NO_HINT, Image(b"\xff")),
        case("no hint, in a list", NO_HINT, ["words", Image(b"words")]),
        case("no hint, in an object", NO_HINT, {"picture": Image(b"words")}),
        case("a list", list, ["words", Image(b"\xff")]),
        case("a list of anything", list[Any], (Image(b"\xff"),)),
        case("words", str, Image(b"\xff")),
    ],
)
def test_content_that_the_return_type_does_not_name_is_refused_with_what_to_write(
    hint: Any, value: Any
) -> None:
    with pytest.raises(Failed) as raised:
        serve(returning(value, hint)).spec.function({})
    assert raised.value.reason is Reason.BAD_RESULT
    assert "write `-> Image` or `-> list[Content]`" in raised.value.findings[0].message
    assert "write `-> Image` or `-> list[Content]`" in str(raised.value.details["error"])
