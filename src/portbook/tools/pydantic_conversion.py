"""Arguments and results of any type, through pydantic: their schemas, and their conversion.

JSON Schema validates arguments; pydantic only converts valid ones, and serializes results to JSON. Imported
late: for types that are not plain, and for values that `plain_types` leaves to pydantic.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import pydantic
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError, to_jsonable_python

from portbook.errors import Finding, Reason, Refused
from portbook.model import JSONObject
from portbook.schema.violation_wording import escape_pointer
from portbook.tools.accepted_names import flaw_of
from portbook.tools.declared_options import bad_default
from portbook.tools.plain_types import json_copy
from portbook.tools.source_place import declared_at
from portbook.tools.spec import BadTool
from portbook.tools.type_schemas import ArgumentSchemas, TypeSchemas, allows_anything, line_of, schema_of

__all__ = ["any_to_json", "converted_arguments", "converted_result"]


def converted_arguments(
    function: Callable[..., Any], parameters: Sequence[inspect.Parameter], hints: dict[str, Any]
) -> tuple[Callable[[JSONObject], dict[str, Any]], JSONObject]:
    """Return a function that converts validated JSON to the values of `parameters`, and their schema.

    Raises `BadTool`, with the place of the `function`, where a parameter has an unusable default or takes a
    value under a name that the schema does not have; `TypeError` where a type has no schema.
    """
    # Fields get generated names: a parameter may be called `schema` or `_x`, a model's field may not.
    fields: dict[str, Any] = {}
    names: list[tuple[str, str]] = []
    for at, parameter in enumerate(parameters):
        if isinstance(parameter.default, FieldInfo):
            raise BadTool(
                f"{declared_at(function)}: parameter {parameter.name} has a Field as its default, which a "
                f"plain call would pass on as the value; write {parameter.name}: Annotated[..., Field(...)]"
            )
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[f"p{at}"] = (hints.get(parameter.name, Any), pydantic.Field(default, alias=parameter.name))
        names.append((parameter.name, f"p{at}"))
    try:
        model = pydantic.create_model("Arguments", __config__=pydantic.ConfigDict(extra="forbid"), **fields)
        if flaw := flaw_of(model.__pydantic_core_schema__):
            raise BadTool(f"{declared_at(function)}: {flaw}")
        schema = schema_of(
            lambda: model.model_json_schema(
                by_alias=True, schema_generator=ArgumentSchemas, mode="validation"
            )
        )
    except (pydantic.PydanticUserError, SchemaError) as error:
        raise TypeError(line_of(error)) from None
    schema.pop("title", None)
    schema.setdefault("properties", {})

    validate = model.__pydantic_validator__.validate_python  # model_validate, without its checks of options
    # What has no type is passed on as it is: a function may change it, and the record must not.
    is_copied = allows_anything(schema)
    _require_defaults(function, parameters, validate)

    def bind(arguments: JSONObject) -> dict[str, Any]:
        try:
            # Only the names in the schema: policy has decided by them.
            given = json_copy(arguments) if is_copied else arguments
            converted = validate(given, by_alias=True, by_name=False)
        except pydantic.ValidationError as error:
            raise Refused(Reason.BAD_ARGUMENTS, _findings(error)) from None
        return {name: getattr(converted, field) for name, field in names}

    return bind, schema


# Errors of pydantic that tell of another type, beside those whose names end in _type and _parsing.
_OF_ANOTHER_TYPE: Final = ("enum", "literal_error")


def _require_defaults(
    function: Callable[..., Any], parameters: Sequence[inspect.Parameter], validate: Callable[..., Any]
) -> None:
    """Raise `BadTool` for a default that is not of its parameter's type.

    None is one for every type: many write it for "not given". So is one that breaks a constraint: -1 for "no
    limit", beside numbers from 1 on.
    """
    unset = (None, inspect.Parameter.empty)
    given = {each.name: each.default for each in parameters if not any(each.default is one for one in unset)}
    try:
        validate(given, by_alias=True, by_name=False)
    except pydantic.ValidationError as error:
        for found in error.errors(include_url=False, include_context=False, include_input=False):
            if found["type"].endswith(("_type", "_parsing")) or found["type"] in _OF_ANOTHER_TYPE:
                raise bad_default(function, str(found["loc"][0])) from None


def converted_result(hint: Any) -> tuple[Callable[[Any], Any], JSONObject]:
    """Return a function that serializes values of a type to JSON, and their schema.

    The function raises `ValueError` for a value that JSON cannot hold.

    Raises `TypeError` where the type has no schema.
    """
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hint)
        schema = schema_of(lambda: adapter.json_schema(schema_generator=TypeSchemas, mode="serialization"))
    except (pydantic.PydanticUserError, SchemaError) as error:
        raise TypeError(line_of(error)) from None
    to_python = adapter.serializer.to_python  # dump_python, without its checks of options

    def dump(value: Any) -> Any:
        return to_python(value, mode="json", by_alias=True, warnings=False)

    return dump, schema


def any_to_json(value: Any) -> Any:
    """Return any value as JSON.

    Raises `ValueError` where a part of it cannot be serialized.
    """
    return to_jsonable_python(value)


def _findings(error: pydantic.ValidationError) -> tuple[Finding, ...]:
    # pydantic's messages may quote the value, so only the type of error is reported.
    return tuple(
        sorted(
            Finding(escape_pointer(problem["loc"]), f"not accepted ({problem['type']})", problem["type"], "")
            for problem in error.errors(include_url=False, include_context=False, include_input=False)
        )
    )
