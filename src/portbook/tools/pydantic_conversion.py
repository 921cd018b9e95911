"""Arguments and results of any type, through pydantic: their schemas, and their conversion.

JSON Schema validates arguments; pydantic only converts valid ones, and serializes results to JSON. Imported
late: for types that are not plain, and for values that `plain_types` leaves to pydantic.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

import pydantic
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError, to_jsonable_python

from portbook.errors import Finding, Reason, Refused
from portbook.model import JSONObject
from portbook.schema.violation_wording import escape_pointer
from portbook.tools.mistake_place import declared_at
from portbook.tools.plain_types import json_copy
from portbook.tools.pydantic_schemas_and_forms import (
    ArgumentSchemas,
    TypeSchemas,
    allows_anything,
    line_of,
    schema_of,
)
from portbook.tools.spec import BadTool
from portbook.tools.tool_metadata import bad_default

__all__ = ["any_to_json", "converted_arguments", "converted_result", "flaw_of"]


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


# Whether a type takes values only under the names of its schema, at every depth.
#
# Policy decides by the names of the served schema. A field that pydantic also fills from a different name
# would let a value past the rule on it. Validation by alias alone (`by_name=False`) excludes the names of
# aliased fields; what it cannot exclude is found here, when a tool is declared.

# Members of a core schema that hold values of the author or functions, not schemas.
_NO_SCHEMAS: Final = frozenset({"cls", "config", "default", "expected", "metadata", "ref", "serialization"})

# The nodes that have named fields: the member with the fields, and the member of a field with its alias.
_FIELDS: Final = {
    "model-fields": ("fields", "validation_alias"),
    "typed-dict": ("fields", "validation_alias"),
    "dataclass-args": ("fields", "validation_alias"),
    "arguments": ("arguments_schema", "alias"),
    "arguments-v3": ("arguments_schema", "alias"),
}

_Node = dict[str, Any]


def flaw_of(core_schema: Any) -> str | None:
    """Return why a type would take a value under a name that its schema does not have; None if it does not.

    1. A field has several aliases, or a path as its alias: the schema has one name for it.
    2. A class with its own `__init__` passes the arguments on, and pydantic validates them again as the
       class is configured: by the names of its fields, too.
    """
    nodes = list(_nodes(core_schema))
    for node in nodes:
        for name, alias in _aliases(node):
            if not _is_one_name(alias):
                return (
                    f"{_owner(node)}.{name} has several aliases or a path, and its schema has one name; "
                    "give it one alias: Field(alias=...)"
                )
    own = next((node for node in nodes if node.get("type") == "model" and node.get("custom_init")), None)
    if own is None:
        return None
    for node in nodes:
        if _is_by_name(node) and any(
            alias != name for part in _nodes(node) for name, alias in _aliases(part)
        ):
            return (
                f"{_owner(own)} has its own __init__, so that fields of {_owner(node)} are taken by name, "
                "where the schema has their aliases; drop the __init__, or populate_by_name and "
                "validate_by_name"
            )
    return None


def _nodes(schema: Any) -> Iterator[_Node]:
    """Yield every schema within a core schema; references name one of its definitions."""
    waiting: list[Any] = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            node = cast("_Node", item)
            yield node
            waiting.extend(value for member, value in node.items() if member not in _NO_SCHEMAS)
        elif isinstance(item, list | tuple):
            waiting.extend(cast("list[Any]", item))


def _aliases(node: _Node) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a node, each with its alias, or its name where it has none."""
    members = _FIELDS.get(str(node.get("type")))
    if members is None:
        return
    fields = cast("dict[str, _Node] | list[_Node]", node[members[0]])
    by_name = fields if isinstance(fields, dict) else {str(field["name"]): field for field in fields}
    for name, field in by_name.items():
        yield name, field.get(members[1], name)


def _is_one_name(alias: Any) -> bool:
    # A list is a path; a list of lists is a choice of paths, of which the schema has the first plain name.
    if isinstance(alias, list):
        choices = cast("list[Any]", alias)
        return len(choices) == 1 and isinstance(choices[0], list) and len(cast("list[Any]", choices[0])) == 1
    return True


def _is_by_name(node: _Node) -> bool:
    config = cast("_Node", node.get("config") or {})
    return bool(config.get("validate_by_name") or config.get("populate_by_name"))


def _owner(node: _Node) -> str:
    cls: Any = node.get("cls")
    named = node.get("model_name") or node.get("dataclass_name") or getattr(cls, "__name__", None)
    return str(named or "a function")
