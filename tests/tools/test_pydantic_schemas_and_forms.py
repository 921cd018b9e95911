"""Forms from types: the flat schema that MCP has, and what was filled in as that type."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import uuid
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field
from typing_extensions import TypedDict

from portbook import Form
from portbook.protocol.message_validation import SchemaValidator
from portbook.schema.official_schemas import SchemaStore
from portbook.tools.questions import Answered

VALIDATOR = SchemaValidator(SchemaStore())
VALIDATOR.initialize()


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Trip(BaseModel):
    city: str = Field(min_length=1, description="Where to.")
    days: int = 3
    size: Size = Size.SMALL
    cabin: Literal["a", "b"] | None = None
    note: str | None
    extras: list[Literal["food", "wifi"]] = []


@dataclasses.dataclass
class Point:
    x: int
    when: dt.date | None = None


class Options(TypedDict):
    deep: bool


def even(value: int) -> int:
    if value % 2:
        raise ValueError("odd")
    return value


def accepted(form: Form, content: Any) -> Any:
    answer = form.read({"action": "accept", "content": content})
    return None if answer is None else answer.content


def test_a_model_becomes_a_flat_form() -> None:
    assert Form("Where?", Trip).request()["params"] == {
        "message": "Where?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1, "description": "Where to."},
                "days": {"type": "integer", "default": 3},
                "size": {"type": "string", "enum": ["small", "large"], "default": "small", "title": "Size"},
                "cabin": {"type": "string", "enum": ["a", "b"]},
                "note": {"type": "string"},
                "extras": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["food", "wifi"]},
                    "default": [],
                },
            },
            "required": ["city"],
        },
    }


@pytest.mark.parametrize(
    ("hint", "content", "value"),
    [
        (Trip, {"city": "Oslo"}, Trip(city="Oslo", note=None)),
        (Trip, {"city": "Oslo", "size": "large", "note": "x"}, Trip(city="Oslo", size=Size.LARGE, note="x")),
        (Point, {"x": 1}, Point(1)),
        (Point, {"x": 1, "when": "2026-01-02"}, Point(1, dt.date(2026, 1, 2))),
        (Options, {"deep": True}, {"deep": True}),
        (bool, {"value": False}, False),
        (str, {"value": "a"}, "a"),
        (Size, {"value": "large"}, Size.LARGE),
        (Literal["a"], {"value": "a"}, "a"),
        (uuid.UUID, {"value": str(uuid.UUID(int=1))}, uuid.UUID(int=1)),
    ],
)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_what_was_filled_in_is_one_of_the_type_and_the_form_one_that_mcp_has(
    hint: Any, content: Any, value: Any, revision: str
) -> None:
    form = Form("Fill in", hint)
    assert accepted(form, content) == value
    assert type(accepted(form, content)) is type(value)
    request = {"jsonrpc": "2.0", "id": 1, **form.request()}
    assert VALIDATOR.findings("elicitation/create", request, revision) == ()


@pytest.mark.parametrize(
    ("hint", "content"),
    [
        (Trip, {}),
        (Trip, {"city": 5}),
        (Trip, {"city": "Oslo", "size": "huge"}),
        (bool, {}),
        (bool, {"value": "yes"}),
        (Annotated[int, AfterValidator(even)], {"value": 3}),
    ],
)
def test_what_is_not_of_the_type_is_no_answer(hint: Any, content: Any) -> None:
    assert Form("Fill in", hint).read({"action": "accept", "content": content}) is None


def test_a_no_has_nothing_in_it() -> None:
    assert Form("Fill in", Trip).read({"action": "decline"}) == Answered("decline", None)
    assert Form("Fill in").read({"action": "cancel"}) == Answered("cancel", {})


class Nested(BaseModel):
    inner: Trip


@pytest.mark.parametrize("hint", [Nested, list[int], list[str], int | str, dict[str, int], object(), Any])
def test_a_type_that_is_no_form_is_refused(hint: Any) -> None:
    with pytest.raises(TypeError):
        Form("Fill in", hint).request()


def test_an_answer_has_its_content_under_both_names() -> None:
    answer = Answered("accept", {"a": 1})
    assert (answer.data, answer.is_accepted) == ({"a": 1}, True)
