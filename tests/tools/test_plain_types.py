"""Plain types: pydantic, which Portbook does without for them, is the oracle."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from datetime import date
from enum import Enum, IntEnum, StrEnum
from typing import Any, Literal, Optional, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook import Toolset
from portbook.errors import Failed, Refused
from portbook.schema.engine import compile_schema
from portbook.testing import TestClient
from portbook.tools.catalog import Catalog
from portbook.tools.function_arguments_and_input_schema import bind_arguments
from portbook.tools.functions import spec_from_function
from portbook.tools.plain_types import NotPlain, plain_type
from portbook.tools.pydantic_conversion import converted_arguments, converted_result
from portbook.tools.spec import BadTool, Effect, ToolSpec

PLAIN: list[Any] = [
    str,
    int,
    float,
    bool,
    type(None),
    Any,
    list,
    dict,
    Literal["a"],
    Literal["a", "b"],
    list[str],
    list[Any],
    list[list[float]],
    dict[str, int],
    dict[str, Any],
    dict[str, list[bool]],
    str | None,
    Optional[int],  # noqa: UP045 - an author may write it so
    list[str | None],
    dict[str, str] | None,
]


class Level(IntEnum):
    LOW = 1


OTHERS: list[Any] = [
    bytes,
    date,
    Level,
    tuple,
    set[str],
    dict[int, str],
    str | int,
    None | str | int,
    Literal[1],
    "str",
    list[date],
    dict[str, set[int]],
    date | None,
]

NAMES = st.sampled_from(["a", "b", ""])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | NAMES
json_values = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
odd_values: list[Any] = [float("nan"), float("-inf"), date(2026, 3, 1), Level.LOW, b"a", 2**70, "\ud800"]
odd_values += [(1, "a"), [(1,)], {1: "a"}, {"a": {2}}]
returned_values = json_values | st.sampled_from(odd_values)


def takes(hint: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter("value", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def outcome(work: Callable[[], Any]) -> tuple[str, str]:
    try:
        made = work()
    except Refused as refused:
        return "refused", repr(refused.findings)
    except (Failed, ValueError) as error:
        return "failed", type(error).__mro__[-3].__name__
    return "made", f"{made!r}"  # tells 1 from 1.0 and True


def bound_by(hint: Any, default: Any = inspect.Parameter.empty) -> tuple[Callable[..., Any], Any]:
    def function(value: Any) -> None: ...

    function.__signature__ = inspect.Signature([takes(hint, default)])  # type: ignore[attr-defined]
    return bind_arguments(function, {"value": hint})


def tool_returning(hint: Any, value: Any) -> ToolSpec:
    def function() -> Any:
        return value

    function.__annotations__ = {"return": hint}
    return spec_from_function(
        "t", function, description=None, effect=Effect.READ, is_inline=True, timeout_ms=None
    )


@pytest.mark.parametrize("hint", PLAIN, ids=str)
def test_a_plain_type_has_the_schema_that_pydantic_gives_it(hint: Any) -> None:
    assert plain_type(hint) is not None
    _, ours = bound_by(hint)
    _, theirs = converted_arguments("here", [takes(hint)], {"value": hint})
    assert json.dumps(ours) == json.dumps(theirs)
    result = tool_returning(hint, None).output_schema
    assert json.dumps(result) == json.dumps(True if hint is Any else converted_result(hint)[1])


DEFAULTS: list[tuple[Any, list[Any]]] = [
    (str | None, [None, "a"]),
    (Any, [None, "a", 1, 1.5, True]),
    (int, [None, 1]),
    (float, [None, 1.5, 1]),
    (list[str], [None]),
    (Literal["a", "b"], [None, "a"]),
]


@pytest.mark.parametrize(
    ("hint", "default"), [(hint, each) for hint, defaults in DEFAULTS for each in defaults], ids=repr
)
def test_a_default_is_in_the_schema_and_reaches_the_function(hint: Any, default: Any) -> None:
    bind, ours = bound_by(hint, default)
    convert, theirs = converted_arguments("here", [takes(hint, default)], {"value": hint})
    assert json.dumps(ours) == json.dumps(theirs)
    assert bind({}) == convert({}) == {"value": default}


@pytest.mark.parametrize(
    ("hint", "default"),
    [(str, 1), (str | None, 1), (int, "a"), (int, 1.5), (int, True), (list[str], "a"), (Literal["a"], "b")],
    ids=repr,
)
def test_a_default_of_another_type_is_refused(hint: Any, default: Any) -> None:
    with pytest.raises(BadTool, match="the default of parameter value is not of its type"):
        bound_by(hint, default)


@pytest.mark.parametrize("hint", OTHERS, ids=str)
def test_every_other_type_is_left_to_pydantic(hint: Any) -> None:
    assert plain_type(hint) is None


@given(hint=st.sampled_from(PLAIN), value=json_values)
def test_arguments_become_what_pydantic_makes_of_them(hint: Any, value: Any) -> None:
    bind, _ = bound_by(hint)
    convert, _ = converted_arguments("here", [takes(hint)], {"value": hint})
    given_one = {"value": value}
    assert outcome(lambda: bind(given_one)) == outcome(lambda: convert(given_one))


@pytest.mark.parametrize("arguments", [{}, {"other": 1}, {"value": "a", "other": 1}], ids=str)
def test_names_that_do_not_fit_get_the_verdict_of_pydantic(arguments: dict[str, Any]) -> None:
    bind, _ = bound_by(str)
    convert, _ = converted_arguments("here", [takes(str)], {"value": str})
    kind, findings = outcome(lambda: bind(arguments))
    assert (kind, findings) == outcome(lambda: convert(arguments))
    assert kind == "refused"


@given(hint=st.sampled_from([each for each in PLAIN if each is not Any]), value=returned_values)
def test_results_become_what_pydantic_makes_of_them(hint: Any, value: Any) -> None:
    run = tool_returning(hint, value).function
    assert run is not None
    dump, _ = converted_result(hint)
    assert outcome(lambda: run({})) == outcome(lambda: dump(value))


@given(value=json_values)
def test_a_result_of_any_type_that_is_json_is_returned_as_it_is(value: Any) -> None:
    run = tool_returning(Any, value).function
    assert run is not None
    assert repr(run({})) == repr(value)


@pytest.mark.parametrize("last", ["b", 1, 1.5, None, ["b"]], ids=repr)
@pytest.mark.parametrize("hint", [list[str], list[int], list[Any], list[str | None]], ids=str)
def test_a_long_list_is_judged_as_a_short_one(hint: Any, last: Any) -> None:
    bind, _ = bound_by(hint)
    convert, _ = converted_arguments("here", [takes(hint)], {"value": hint})
    for first in ("a", 1, None):
        given_one = {"value": [*[first] * 200, last]}
        assert outcome(lambda: bind(given_one)) == outcome(lambda: convert(given_one))  # noqa: B023


TOKEN = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


class Marked(str):
    """A text of a type of its own, as libraries for templates and for arrays have them."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise ValueError

    __hash__ = str.__hash__


class Colour(StrEnum):
    RED = "red"


class Odd(str, Enum):  # noqa: UP042 - a `StrEnum` has the value that it says
    """Texts that say one thing, and have a value that says a different one."""

    def __new__(cls, text: str, value: str) -> Self:
        made = str.__new__(cls, text)
        made._value_ = value
        return made

    PLAIN = "red", TOKEN
    SECRET = TOKEN, "red"


@pytest.mark.parametrize("hint", [list[str], dict[str, list[str]], list[str | None]], ids=str)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Marked("red"), "red"),
        (Colour.RED, "red"),
        ("red", "red"),
        (Odd.PLAIN, "red"),
        (Odd.SECRET, "[redacted]"),
        (Marked(TOKEN), "[redacted]"),
    ],
    ids=["a subclass", "an enum", "text", "an odd enum", "a secret in an enum", "a secret in a subclass"],
)
def test_texts_of_a_subclass_are_texts_however_many_there_are(hint: Any, value: str, expected: str) -> None:
    toolset = Toolset("x")

    def texts(count: int) -> Any:
        many = ["null", *[value] * count]
        return {"some": many} if hint == dict[str, list[str]] else many

    texts.__annotations__["return"] = hint
    toolset.tool(effect="read")(texts)
    with TestClient(toolset) as client:
        for count in (3, 63, 64, 65, 200, 4_000):
            found = client.call("texts", count=count).value
            found = found["some"] if isinstance(found, dict) else found
            assert found == ["null", *[expected] * count]


@pytest.mark.parametrize("hint", [list[str], dict[str, list[str]]], ids=str)
def test_a_function_that_changes_its_arguments_does_not_change_the_call(hint: Any) -> None:
    bind, _ = bound_by(hint)
    arguments: dict[str, Any] = {"value": ["a"] if hint == list[str] else {"a": ["a"]}}
    before = json.dumps(arguments)
    value = bind(arguments)["value"]
    (value if hint == list[str] else value["a"]).append("b")
    assert json.dumps(arguments) == before


def test_what_is_not_json_is_not_plain() -> None:
    anything = plain_type(Any)
    assert anything is not None
    for value in ((1,), {1: 2}, float("nan"), date(2026, 3, 1), [Level.LOW]):
        with pytest.raises(NotPlain):
            anything.give(value)


@pytest.mark.parametrize("hint", PLAIN, ids=str)
def test_the_schemas_of_plain_types_compile_and_are_compiled_with_the_first_call(hint: Any) -> None:
    spec = tool_returning(hint, None)
    assert spec.are_schemas_checked
    tool = Catalog([spec]).find("t")
    assert tool is not None
    assert compile_schema(spec.output_schema, "").is_valid([]) is tool.output.is_valid([])


@pytest.mark.parametrize("hint", [date, set[str], list[date]], ids=str)
def test_the_schemas_of_other_types_are_compiled_at_once(hint: Any) -> None:
    assert not tool_returning(hint, None).are_schemas_checked


def test_a_parameter_of_another_type_is_enough_to_compile_at_once() -> None:
    def function(when: date) -> str:
        return when.isoformat()

    spec = spec_from_function(
        "t", function, description=None, effect=Effect.READ, is_inline=True, timeout_ms=None
    )
    assert not spec.are_schemas_checked
