"""Runs a function for its result: its schema from the return type, and the value as JSON or content.

Plain types are converted by `plain_types`, all others by `pydantic_conversion`, which is imported late.
Content such as an `Image` has to be declared by the return type. A missing `await` fails the call.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from functools import cache
from types import CoroutineType
from typing import Any, Final, TypeAlias, cast

from portbook.errors import Failed, Finding, Reason
from portbook.model import JSONObject
from portbook.schema.json_schema_drafts import DIALECT
from portbook.tools.content_class import Content
from portbook.tools.context import Context, leaves_questions
from portbook.tools.function_arguments_and_input_schema import is_context
from portbook.tools.mistake_place import declared_at
from portbook.tools.plain_types import Bind, NotPlain, plain_type

__all__ = ["Finish", "as_content", "bind_result", "is_content", "jsonable", "runner", "takes_context"]

Finish: TypeAlias = Callable[[Any], Any]


def runner(function: Callable[..., Any], bind: Bind, finish: Finish) -> Callable[[JSONObject], Any]:
    """Wrap `function` to take validated arguments and return JSON; the wrapper is async where it is.

    The wrapper raises `Failed` where the function did not await a coroutine or a question.
    """
    run = _run_async if inspect.iscoroutinefunction(function) else _run
    return run(function, bind, finish)


def takes_context(function: Callable[..., Any]) -> bool:
    """Return whether a parameter of `function` gets the `Context` of the call."""
    return any(map(is_context, typing.get_type_hints(function, include_extras=True).values()))


def _run(function: Callable[..., Any], bind: Bind, finish: Finish) -> Callable[[JSONObject], Any]:
    has_context = takes_context(function)

    def run(arguments: JSONObject) -> Any:
        given = bind(arguments)
        is_asking = False
        try:
            value = function(**given)
        finally:
            if has_context:
                is_asking = _leaves_questions(given)
        if is_asking or type(value) is CoroutineType:
            raise _not_awaited(value, function)
        return finish(value)

    return run


def _run_async(function: Callable[..., Any], bind: Bind, finish: Finish) -> Callable[[JSONObject], Any]:
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

    return run_with_context if takes_context(function) else run


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


def is_content(hint: Any) -> bool:
    """Return whether a return type declares content."""
    if isinstance(hint, type) and issubclass(hint, Content):
        return True
    return any(is_content(each) for each in typing.get_args(hint))


def as_content(value: Any) -> Any:
    """Return content as the blocks of MCP.

    Raises `Failed` where a part of it is no content.
    """
    from portbook.tools.content_blocks import blocks_of  # there already, where a function declares content

    try:
        return blocks_of(value)
    except TypeError as error:
        raise Failed(Reason.BAD_RESULT, (Finding("", str(error), "content", ""),)) from None


def bind_result(hints: dict[str, Any]) -> tuple[Finish, JSONObject | bool]:
    """Return a function that converts results of the return type to JSON, and the output schema."""
    hint = hints.get("return", Any)
    plain = plain_type(hint)
    if plain is None:
        dump, schema = _through_pydantic(hint)
        return _finisher(dump, hint), schema
    fallback = cache(lambda: _through_pydantic(hint)[0])
    return _finisher(plain.give, hint, fallback), True if hint is Any else {
        "$schema": DIALECT,
        **plain.schema,
    }


def _through_pydantic(hint: Any) -> tuple[Finish, JSONObject | bool]:
    # Late: tools of plain types need none of it.
    from portbook.tools.pydantic_conversion import any_to_json, converted_result

    return (any_to_json, True) if hint is Any else converted_result(hint)


def _finisher(dump: Finish, hint: Any, fallback: Callable[[], Finish] | None = None) -> Finish:
    """Return a function that serializes a result of this type, which declares no content.

    What `dump` does not take as plain is left to the `fallback`.
    """
    is_open = _is_open(hint)

    def finish(value: Any) -> Any:
        if type(value) is not hint and isinstance(value, Content):
            raise _undeclared(value)
        if is_open and isinstance(value, list | tuple | dict):
            _require_no_content(cast("Any", value))
        try:
            return dump(value)
        except (NotPlain, RecursionError):  # a circle, perhaps: pydantic says so
            if fallback is None:
                raise
        except ValueError as error:
            raise _not_serializable(error) from None
        try:
            return fallback()(value)
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
