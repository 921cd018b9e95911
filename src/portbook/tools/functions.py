"""Tool specs from functions: schemas are generated from type hints.

JSON Schema validates arguments. `function_arguments_and_input_schema` converts valid ones to what the
function takes, and `function_results` its result to JSON.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from portbook.errors import Refused
from portbook.model import JSONObject
from portbook.schema.engine import BadSchema
from portbook.tools.function_arguments_and_input_schema import (
    UNUSABLE_HINTS,
    are_plain_arguments,
    bind_arguments,
    bind_as_given,
    unusable_hints,
)
from portbook.tools.function_results import as_content, bind_result, is_content, runner, takes_context
from portbook.tools.mistake_place import declared_at
from portbook.tools.plain_types import Bind, plain_type
from portbook.tools.spec import BadTool, Effect, Switch, TaskUse, ToolSpec
from portbook.tools.tool_names import canonical_name

__all__ = ["spec_from_function"]


def spec_from_function(
    name: str,
    function: Callable[..., Any],
    *,
    description: str | None,
    effect: Effect,
    is_effect_declared: bool = True,
    is_inline: bool,
    timeout_ms: int | None,
    shown: JSONObject | None = None,
    hints: JSONObject | None = None,
    given_schema: JSONObject | None = None,
    task: TaskUse = "never",
    detaches: bool = True,
    switch: Switch | None = None,
    tags: tuple[str, ...] = (),
) -> ToolSpec:
    """Return the spec of the tool that `function` implements; `name` is the declared one.

    Raises `BadTool` where its signature cannot be used for a tool.
    """
    _require_function(function)
    is_async = inspect.iscoroutinefunction(function)
    if is_async and is_inline:
        raise BadTool(f"{declared_at(function)}: inline is for plain functions; drop it or drop async")
    _require_usable_schema(function, given_schema)
    try:
        types = typing.get_type_hints(function, include_extras=True)
        if given_schema is None:
            bind, input_schema = bind_arguments(function, types)
        else:
            bind, input_schema = bind_as_given(function, types), given_schema
        gives_content = is_content(types.get("return"))
        finish, output_schema = (as_content, True) if gives_content else bind_result(types)
        is_plain = gives_content or plain_type(types.get("return", Any)) is not None
        is_plain = is_plain and given_schema is None and are_plain_arguments(function, types)
    except BadTool:
        raise
    except UNUSABLE_HINTS as error:
        raise unusable_hints(function, error) from None
    return ToolSpec(
        name=canonical_name(name),
        declared_name=name,
        description=description or inspect.getdoc(function) or "",
        input_schema=input_schema,
        output_schema=output_schema,
        effect=effect,
        is_effect_declared=is_effect_declared,
        function=runner(function, bind, finish),
        takes_context=takes_context(function),
        is_async=is_async,
        is_inline=is_inline,
        timeout_ms=timeout_ms,
        shown=shown or {},
        hints=hints or {},
        gives_content=gives_content,
        task=task,
        detaches=detaches,
        switch=switch,
        tags=tags,
        author=function,
        refuse=_rehearsed(bind),
        are_schemas_checked=is_plain,  # made of a few keywords of ours
    )


def _require_function(function: Callable[..., Any]) -> None:
    """Raise `BadTool` for what can be called, but not by its arguments' names, or without a result."""
    if inspect.isasyncgenfunction(function):
        raise BadTool(f"{declared_at(function)}: an async function that yields has no result; return a list")
    code = getattr(function, "__code__", None)
    if code is None or not code.co_argcount or inspect.ismethod(function):
        return
    first = code.co_varnames[0]
    if first in ("self", "cls") and first not in function.__annotations__:
        raise BadTool(
            f"{declared_at(function)}: parameter {first} is of a method; "
            "declare the method of an object: toolset.tool(thing.method)"
        )


def _require_usable_schema(function: Callable[..., Any], schema: JSONObject | None) -> None:
    if schema is None:
        return
    from portbook.schema.engine import validator_for  # late, here and below: few tools give one

    try:
        validator_for(schema)
    except BadSchema as error:
        found = error.findings[0]
        raise BadTool(
            f"{declared_at(function)}: input_schema is not a usable JSON Schema at "
            f"{found.pointer or '(root)'}: {found.message}"
        ) from None


def _rehearsed(bind: Bind) -> Callable[[JSONObject], Refused | None]:
    def refuse(arguments: JSONObject) -> Refused | None:
        try:
            bind(arguments)
        except Refused as refused:
            return refused.with_traceback(None)
        return None

    return refuse
