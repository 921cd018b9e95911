"""Tool specs from functions: schemas are generated from type hints.

JSON Schema validates arguments; here valid ones are converted to what the function takes, and its result to
JSON. Plain types are converted by `plain_types`, all others by `pydantic_conversion`, which is imported late.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from functools import cache
from types import CoroutineType
from typing import Any, Final, cast

from portbook.errors import Failed, Finding, Reason, Refused
from portbook.model import JSONObject
from portbook.schema.engine import BadSchema
from portbook.schema.json_schema_drafts import DIALECT
from portbook.tools.content_block import Content
from portbook.tools.context import Context, leaves_questions
from portbook.tools.function_arguments import (
    UNUSABLE_HINTS,
    are_plain_arguments,
    bind_arguments,
    bind_as_given,
    is_context,
    unusable_hints,
)
from portbook.tools.plain_types import Bind, NotPlain, plain_type
from portbook.tools.source_place import declared_at
from portbook.tools.spec import BadTool, Effect, Switch, TaskUse, ToolSpec
from portbook.tools.tool_names import canonical_name

__all__ = ["jsonable", "runner", "spec_from_function"]


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
        gives_content = _is_content(types.get("return"))
        finish, output_schema = (_as_content, True) if gives_content else _result(types)
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
        takes_context=_takes_context(function),
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
    from portbook.schema.cache import validator_for  # late, here and below: few tools give one

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


_Finish = Callable[[Any], Any]


def runner(function: Callable[..., Any], bind: Bind, finish: _Finish) -> Callable[[JSONObject], Any]:
    """Wrap `function` to take validated arguments and return JSON; the wrapper is async where it is.

    The wrapper raises `Failed` where the function did not await a coroutine or a question.
    """
    run = _run_async if inspect.iscoroutinefunction(function) else _run
    return run(function, bind, finish)


def _takes_context(function: Callable[..., Any]) -> bool:
    return any(map(is_context, typing.get_type_hints(function, include_extras=True).values()))


def _run(function: Callable[..., Any], bind: Bind, finish: _Finish) -> Callable[[JSONObject], Any]:
    takes_context = _takes_context(function)

    def run(arguments: JSONObject) -> Any:
        given = bind(arguments)
        is_asking = False
        try:
            value = function(**given)
        finally:
            if takes_context:
                is_asking = _leaves_questions(given)
        if is_asking or type(value) is CoroutineType:
            raise _not_awaited(value, function)
        return finish(value)

    return run


def _run_async(function: Callable[..., Any], bind: Bind, finish: _Finish) -> Callable[[JSONObject], Any]:
    async def run(arguments: JSONObject) -> Any:
        value = await function(**bind(arguments))
        if type(value) is CoroutineType:
            raise _not_awaited(value, function)
        return finish(value)

    async def run_with_context(arguments: JSONObject) -> Any:
        given = bind(arguments)
        is_asking = False
        try:
            value = await function(**given)
        finally:
            is_asking = _leaves_questions(given)
        if is_asking or type(value) is CoroutineType:
            raise _not_awaited(value, function)
        return finish(value)

    return run_with_context if _takes_context(function) else run


def _leaves_questions(given: dict[str, Any]) -> bool:
    is_asking = False
    for value in given.values():
        if isinstance(value, Context):
            is_asking = leaves_questions(value) or is_asking
    return is_asking


def _not_awaited(value: Any, function: Callable[..., Any]) -> Failed:
    """Return the failure of a `function` with a missing `await`: a coroutine is not a result."""
    if inspect.iscoroutine(value):
        value.close()
        said = "returned a coroutine; write `async def` and `await`"
    else:
        said = "asked its caller without `await`, so no question was sent; write `async def` and `await`"
    note = f"{declared_at(function)} {said}"
    return Failed(Reason.TOOL_FAILED, note=note, details={"error": f"The tool {said}."})


# Types that may hold anything: content in them can only be detected in the result.
_OPEN: Final = (Any, object, list, tuple, dict)


def _is_open(hint: Any) -> bool:
    return any(hint is each for each in _OPEN) or any(_is_open(each) for each in typing.get_args(hint))


def _is_content(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, Content):
        return True
    return any(_is_content(each) for each in typing.get_args(hint))


def _as_content(value: Any) -> Any:
    from portbook.tools.content import blocks_of  # there already, where a function declares content

    try:
        return blocks_of(value)
    except TypeError as error:
        raise Failed(Reason.BAD_RESULT, (Finding("", str(error), "content", ""),)) from None


def _result(hints: dict[str, Any]) -> tuple[_Finish, JSONObject | bool]:
    hint = hints.get("return", Any)
    plain = plain_type(hint)
    if plain is None:
        dump, schema = _through_pydantic(hint)
        return _finisher(dump, hint), schema
    fallback = cache(lambda: _through_pydantic(hint)[0])

    give = plain.give

    def give_or_dump(value: Any) -> Any:
        try:
            return give(value)
        except (NotPlain, RecursionError):  # a circle, perhaps: pydantic says so
            return fallback()(value)

    finish = _finisher(give_or_dump, hint)
    return finish, True if hint is Any else {"$schema": DIALECT, **plain.schema}


def _through_pydantic(hint: Any) -> tuple[_Finish, JSONObject | bool]:
    # Late: tools of plain types need none of it.
    from portbook.tools.pydantic_conversion import any_to_json, converted_result

    return (any_to_json, True) if hint is Any else converted_result(hint)


def _finisher(dump: _Finish, hint: Any) -> _Finish:
    """Return a function that serializes a result of this type, which declares no content."""
    is_open = _is_open(hint)

    def finish(value: Any) -> Any:
        if type(value) is not hint and isinstance(value, Content):
            raise _undeclared(value)
        if is_open and isinstance(value, list | tuple | dict):
            _require_no_content(cast("Any", value))
        try:
            return dump(value)
        except ValueError as error:
            raise _not_serializable(error) from None

    return finish


def _require_no_content(value: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> None:
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, Content):
            raise _undeclared(part)


def _undeclared(part: Content) -> Failed:
    kind = type(part).__name__
    said = f"returned {kind}, which its return type does not declare; write `-> {kind}` or `-> list[Content]`"
    return Failed(
        Reason.BAD_RESULT, (Finding("", said, "content", ""),), details={"error": f"The tool {said}."}
    )


def jsonable(value: Any) -> Any:
    """Return `value` as JSON.

    Raises `Failed` where a part of it cannot be serialized.
    """
    from portbook.tools.pydantic_conversion import any_to_json  # late: most results are text

    try:
        return any_to_json(value)
    except ValueError as error:
        raise _not_serializable(error) from None


def _not_serializable(error: ValueError) -> Exception:
    """Return why a result cannot be serialized: it is circular, or has bytes that are not UTF-8.

    What a serializer of the tool's own raised counts as raised by the tool.
    """
    if isinstance(error.__cause__, Exception):
        return error.__cause__
    finding = Finding("", "has a part that cannot be written as JSON", "json", "")
    return Failed(Reason.BAD_RESULT, (finding,))
