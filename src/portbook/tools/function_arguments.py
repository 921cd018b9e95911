"""The arguments of a function: their schema from its type hints, and validated JSON converted to them.

Plain types are converted by `plain_types`, all others by `pydantic_conversion`, which is imported late.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, cast

from portbook.model import JSONObject
from portbook.schema.dialects import DIALECT
from portbook.tools.context import Context
from portbook.tools.declared_options import bad_default
from portbook.tools.plain_types import NotPlain, PlainType, is_plain_default, plain_type
from portbook.tools.source_place import declared_at
from portbook.tools.spec import BadTool

__all__ = [
    "UNUSABLE_HINTS",
    "Bind",
    "are_plain_arguments",
    "bind_arguments",
    "bind_as_given",
    "is_context",
    "unusable_hints",
]

Bind: TypeAlias = Callable[[JSONObject], dict[str, Any]]

# What resolving type hints and generating schemas from them raises.
UNUSABLE_HINTS: Final = (NameError, SyntaxError, TypeError, ValueError)

_KEYWORD_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def bind_arguments(function: Callable[..., Any], hints: dict[str, Any]) -> tuple[Bind, JSONObject]:
    """Return a function that converts validated JSON to `function`'s arguments, and the input schema.

    Raises `BadTool` where a parameter cannot be passed by name, has an unusable default, or takes a value
    under a name that the schema does not have.
    """
    parameters: list[inspect.Parameter] = []
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _KEYWORD_KINDS:
            raise BadTool(
                f"{declared_at(function)}: parameter {parameter} cannot be passed by name; give each a name"
            )
        if is_context(hints.get(parameter.name)):
            if context is not None:
                raise BadTool(
                    f"{declared_at(function)}: one parameter may be a Context; drop {parameter.name}"
                )
            context = parameter.name  # injected; not part of the input schema
        else:
            parameters.append(parameter)
    convert, schema = _converted(function, parameters, hints)
    if context is None:
        return convert, schema
    return lambda arguments: {**convert(arguments), context: Context()}, schema


def _converted(
    function: Callable[..., Any], parameters: Sequence[inspect.Parameter], hints: dict[str, Any]
) -> tuple[Bind, JSONObject]:
    """Return a function that converts validated JSON to the values of `parameters`, and their schema."""

    def through_pydantic() -> tuple[Bind, JSONObject]:
        from portbook.tools.pydantic_conversion import converted_arguments  # late: most tools need none of it

        return converted_arguments(function, parameters, hints)

    known, defaults = _plain_types(parameters, hints), _defaults(parameters)
    if known is None:
        return through_pydantic()
    for name, default in defaults.items():
        if not _is_default_of(known[name], default):
            raise bad_default(function, name)
    fallback = cache(lambda: through_pydantic()[0])
    takes = {name: each.take for name, each in known.items()}
    taken = {name: each.taken for name, each in known.items()}

    def bind(arguments: JSONObject) -> dict[str, Any]:
        values: dict[str, Any] = {**defaults}
        try:
            for name, value in arguments.items():
                values[name] = value if type(value) in taken[name] else takes[name](value)
        except (NotPlain, KeyError):  # an operator's own schema may allow more than the function takes
            return fallback()(arguments)
        return values if len(values) == len(takes) else fallback()(arguments)

    return bind, _schema_of_plain(known, defaults)


def are_plain_arguments(function: Callable[..., Any], hints: dict[str, Any]) -> bool:
    """Return whether the schema of a function's arguments is made without pydantic, of known keywords."""
    parameters = inspect.signature(function).parameters.values()
    taken = [each for each in parameters if not is_context(hints.get(each.name))]
    return _plain_types(taken, hints) is not None


def _plain_types(
    parameters: Sequence[inspect.Parameter], hints: dict[str, Any]
) -> dict[str, PlainType] | None:
    """Return the plain type of each parameter; None where one has another type or default."""
    found = {each.name: plain_type(hints.get(each.name, Any)) for each in parameters}
    known = {name: each for name, each in found.items() if each is not None}
    is_plain = len(known) == len(found) and all(map(is_plain_default, _defaults(parameters).values()))
    return known if is_plain else None


def _defaults(parameters: Sequence[inspect.Parameter]) -> dict[str, Any]:
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}


def _is_default_of(plain: PlainType, default: Any) -> bool:
    """Return whether a default is of its parameter's type, or None: many write `text: str = None`."""
    if default is None or type(default) in plain.taken:
        return True
    try:
        plain.take(default)
    except NotPlain:
        return False
    return True


def _schema_of_plain(known: dict[str, PlainType], defaults: dict[str, Any]) -> JSONObject:
    """Return the schema of arguments, its members in the order that pydantic gives them."""
    properties: JSONObject = {name: each.schema for name, each in known.items()}
    for name, default in defaults.items():
        properties[name] = dict(sorted({**known[name].schema, "default": default}.items()))
    schema: JSONObject = {"$schema": DIALECT, "additionalProperties": False, "properties": properties}
    if required := [name for name in known if name not in defaults]:
        schema["required"] = cast("Any", required)
    return {**schema, "type": "object"}


def bind_as_given(function: Callable[..., Any], hints: dict[str, Any]) -> Bind:
    """Return a function that passes validated JSON on as it is, for a tool that brings its own schema.

    Raises `BadTool` where a parameter cannot be passed by name.
    """
    contexts = [name for name, hint in hints.items() if name != "return" and is_context(hint)]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (*_KEYWORD_KINDS, inspect.Parameter.VAR_KEYWORD):
            raise BadTool(
                f"{declared_at(function)}: parameter {parameter} cannot be passed by name; give each a name"
            )

    def bind(arguments: JSONObject) -> dict[str, Any]:
        return {**arguments, **{name: Context() for name in contexts}}

    return bind


def is_context(hint: Any) -> bool:
    """Return whether a parameter with this type hint gets the `Context` of the call."""
    return hint is Context or Context in typing.get_args(hint)


def unusable_hints(function: Callable[..., Any], error: Exception) -> BadTool:
    """Return the exception for a function whose type hints give no schema."""
    # The kind of exception is a word of the library that raised it.
    said = str(error).strip().partition("\n")[0].removeprefix("ValueError: ")
    if isinstance(error, NameError):
        said += "; import or define it"
    elif isinstance(error, SyntaxError):
        said = "a hint in quotes is not valid Python; correct it"
    elif ";" not in said:
        said += "; correct the hint"
    return BadTool(f"{declared_at(function)}: no schema can be generated from its type hints: {said}")
