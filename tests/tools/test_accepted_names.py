"""Which types take a value under a name that their schema does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, TypeAdapter, validate_call
from typing_extensions import TypedDict

from portbook.tools.pydantic_conversion import flaw_of

BY_NAME = ConfigDict(populate_by_name=True)
CHOICES = AliasChoices("a", "b")


class Plain(BaseModel):
    x: int = 0


class Aliased(BaseModel):
    model_config = BY_NAME
    x: int = Field(0, alias="a")


class OneChoice(BaseModel):
    x: int = Field(0, validation_alias=AliasChoices("a"))


class Choices(BaseModel):
    x: int = Field(0, validation_alias=CHOICES)


class APath(BaseModel):
    x: int = Field(0, validation_alias=AliasPath("a"))


class ChoiceOfAPath(BaseModel):
    x: int = Field(0, validation_alias=AliasChoices(AliasPath("a", 0)))


class Recursive(BaseModel):
    kids: list[Recursive] = []
    x: int = Field(0, validation_alias=CHOICES)


@dataclass
class Record:
    x: Annotated[int, Field(validation_alias=CHOICES)] = 0


class Members(TypedDict):
    x: Annotated[int, Field(validation_alias=CHOICES)]


class OwnInit(BaseModel):
    inner: Plain = Plain()

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)


class OwnInitAround(OwnInit):
    aliased: Aliased = Aliased()


@validate_call
def function(x: Annotated[int, Field(validation_alias=CHOICES)]) -> None: ...


class DefaultLikeASchema(BaseModel):
    x: dict[str, Any] = {"type": "model-fields", "fields": {"y": {"validation_alias": [["a"], ["b"]]}}}


@pytest.mark.parametrize("kind", [Plain, Aliased, OneChoice, OwnInit, int, DefaultLikeASchema, list[Aliased]])
def test_one_name_for_each_field_is_fine(kind: Any) -> None:
    assert flaw_of(TypeAdapter(kind).core_schema) is None


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (Choices, "Choices.x"),
        (APath, "APath.x"),
        (ChoiceOfAPath, "ChoiceOfAPath.x"),
        (Recursive, "Recursive.x"),
        (Record, "Record.x"),
        (Members, "Members.x"),
        (function, "a function.x"),
        (dict[str, list[Choices | None]], "Choices.x"),
    ],
)
def test_a_field_with_more_names_is_named_with_what_to_do(kind: Any, named: str) -> None:
    flaw = flaw_of(TypeAdapter(kind).core_schema)
    assert flaw is not None
    assert flaw.startswith(f"{named} has several aliases or a path")
    assert flaw.endswith("give it one alias: Field(alias=...)")


def test_an_init_of_its_own_passes_names_on_to_every_model_inside() -> None:
    flaw = flaw_of(TypeAdapter(OwnInitAround).core_schema)
    assert flaw is not None
    assert flaw.startswith("OwnInitAround has its own __init__, so that fields of Aliased are taken by name")
