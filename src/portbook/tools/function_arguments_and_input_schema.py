"""The arguments of a function: their schema from its type hints, and validated JSON converted to them.

Plain types are converted by `plain_types`, all others by `pydantic_conversion`, which is imported late.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from portbook.model import JSONObject
from portbook.schema.json_schema_drafts import DIALECT
from portbook.tools.context import Context
from portbook.tools.mistake_place import declared_at
from portbook.tools.plain_types import Bind, json_copy, plain_parameters
from portbook.tools.spec import BadTool
from portbook.tools.tool_metadata import bad_default

__all__ = [
    "UNUSABLE_HINTS",
    "are_plain_arguments",
    "bind_arguments",
    "bind_as_given",
    "is_context",
    "unusable_hints",
]

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

    known = plain_parameters(parameters, hints)
    if known is None:
        return through_pydantic()
    for name, default in known.defaults.items():
        if not known.types[name].has_default(default):
            raise bad_default(function, name)
    return known.binder(cache(lambda: through_pydantic()[0])), {"$schema": DIALECT, **known.schema()}


def are_plain_arguments(function: Callable[..., Any], hints: dict[str, Any]) -> bool:
    """Return whether the schema of a function's arguments is made without pydantic, of known keywords."""
    parameters = inspect.signature(function).parameters.values()
    taken = [each for each in parameters if not is_context(hints.get(each.name))]
    return plain_parameters(taken, hints) is not None


def bind_as_given(function: Callable[..., Any], hints: dict[str, Any]) -> Bind:
    """Return a function that passes a copy of validated JSON on, for a tool that brings its own schema.

    Raises `BadTool` where a parameter cannot be passed by name.
    """
    contexts = [name for name, hint in hints.items() if name != "return" and is_context(hint)]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (*_KEYWORD_KINDS, inspect.Parameter.VAR_KEYWORD):
            raise BadTool(
                f"{declared_at(function)}: parameter {parameter} cannot be passed by name; give each a name"
            )

    def bind(arguments: JSONObject) -> dict[str, Any]:
        return {**json_copy(arguments), **{name: Context() for name in contexts}}

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
