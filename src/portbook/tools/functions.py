"""Tool specs from functions: schemas are generated from type hints through pydantic.

JSON Schema validates arguments; pydantic only converts valid ones, and serializes results to JSON.
Imports pydantic, so it is loaded only where functions are served.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

import pydantic
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError, to_jsonable_python

from portbook.errors import Failed, Finding, Reason, Refused
from portbook.model import JSONObject
from portbook.schema.messages import escape_pointer
from portbook.tools.accepted_names import flaw_of
from portbook.tools.content import Content, blocks_of
from portbook.tools.context import Context, leaves_questions
from portbook.tools.spec import BadTool, Effect, Switch, TaskUse, ToolSpec
from portbook.tools.tool_names import canonical_name
from portbook.tools.type_schemas import ArgumentSchemas, TypeSchemas, line_of, schema_of

__all__ = ["bind_arguments", "jsonable", "place_of", "runner", "spec_from_function"]

_KEYWORD_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


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
) -> ToolSpec:
    """Return the spec of the tool that `function` implements; `name` is the declared one.

    Raises `BadTool` where its signature cannot be used for a tool.
    """
    is_async = inspect.iscoroutinefunction(function)
    if is_async and is_inline:
        raise BadTool(f"{place_of(function)}: inline is for plain functions; drop it or drop async")
    try:
        types = typing.get_type_hints(function, include_extras=True)
        if given_schema is None:
            bind, input_schema = bind_arguments(function, types)
        else:
            bind, input_schema = _bind_as_given(function, types), given_schema
        gives_content = _is_content(types.get("return"))
        finish, output_schema = (_as_content, True) if gives_content else _result(types)
    except BadTool:
        raise
    except (pydantic.PydanticUserError, SchemaError, NameError, TypeError, ValueError) as error:
        raise BadTool(
            f"{place_of(function)}: no schema can be generated from its type hints: {line_of(error)}"
        ) from None
    return ToolSpec(
        name=canonical_name(name),
        declared_name=name,
        description=description or inspect.getdoc(function) or "",
        input_schema=input_schema,
        output_schema=output_schema,
        effect=effect,
        is_effect_declared=is_effect_declared,
        function=runner(function, bind, finish),
        is_async=is_async,
        is_inline=is_inline,
        timeout_ms=timeout_ms,
        shown=shown or {},
        hints=hints or {},
        gives_content=gives_content,
        task=task,
        detaches=detaches,
        switch=switch,
        refuse=_rehearsed(bind),
    )


def _rehearsed(bind: Callable[[JSONObject], dict[str, Any]]) -> Callable[[JSONObject], Refused | None]:
    def refuse(arguments: JSONObject) -> Refused | None:
        try:
            bind(arguments)
        except Refused as refused:
            return refused.with_traceback(None)
        return None

    return refuse


_Bind = Callable[[JSONObject], dict[str, Any]]
_Finish = Callable[[Any], Any]


def runner(function: Callable[..., Any], bind: _Bind, finish: _Finish) -> Callable[[JSONObject], Any]:
    """Wrap `function` to take validated arguments and return JSON; the wrapper is async where it is.

    The wrapper raises `Failed` where the function did not await a coroutine or a question.
    """
    run = _run_async if inspect.iscoroutinefunction(function) else _run
    return run(function, bind, finish)


def _run(function: Callable[..., Any], bind: _Bind, finish: _Finish) -> Callable[[JSONObject], Any]:
    def run(arguments: JSONObject) -> Any:
        given = bind(arguments)
        is_asking = False
        try:
            value = function(**given)
        finally:
            is_asking = _leaves_questions(given)
        if is_asking or inspect.iscoroutine(value):
            raise _not_awaited(value, function)
        return finish(value)

    return run


def _run_async(function: Callable[..., Any], bind: _Bind, finish: _Finish) -> Callable[[JSONObject], Any]:
    async def run(arguments: JSONObject) -> Any:
        given = bind(arguments)
        is_asking = False
        try:
            value = await function(**given)
        finally:
            is_asking = _leaves_questions(given)
        if is_asking or inspect.iscoroutine(value):
            raise _not_awaited(value, function)
        return finish(value)

    return run


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
    note = f"{place_of(function)} {said}"
    return Failed(Reason.TOOL_FAILED, note=note, details={"error": f"The tool {said}."})


def bind_arguments(function: Callable[..., Any], hints: dict[str, Any]) -> tuple[_Bind, JSONObject]:
    """Return a function that converts validated JSON to `function`'s arguments, and the input schema.

    Raises `BadTool` where a parameter cannot be passed by name, has an unusable default, or takes a value
    under a name that the schema does not have.
    """
    # Fields get generated names: a parameter may be called `schema` or `_x`, a model's field may not.
    fields: dict[str, Any] = {}
    names: list[tuple[str, str]] = []
    context: str | None = None
    for at, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind not in _KEYWORD_KINDS:
            raise BadTool(
                f"{place_of(function)}: parameter {parameter} cannot be passed by name; give each one a name"
            )
        if _is_context(hints.get(parameter.name)):
            if context is not None:
                raise BadTool(f"{place_of(function)}: one parameter may be a Context; drop {parameter.name}")
            context = parameter.name  # injected; not part of the input schema
            continue
        if isinstance(parameter.default, FieldInfo):
            raise BadTool(
                f"{place_of(function)}: parameter {parameter.name} has a Field as its default, which a plain "
                f"call would pass on as the value; write {parameter.name}: Annotated[..., Field(...)] instead"
            )
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[f"p{at}"] = (hints.get(parameter.name, Any), pydantic.Field(default, alias=parameter.name))
        names.append((parameter.name, f"p{at}"))
    model = pydantic.create_model("Arguments", __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    if flaw := flaw_of(model.__pydantic_core_schema__):
        raise BadTool(f"{place_of(function)}: {flaw}")
    schema = schema_of(
        lambda: model.model_json_schema(by_alias=True, schema_generator=ArgumentSchemas, mode="validation")
    )
    schema.pop("title", None)
    schema.setdefault("properties", {})

    return _binder(model, names, context), schema


def _binder(model: type[pydantic.BaseModel], names: list[tuple[str, str]], context: str | None) -> _Bind:
    """Return a function that converts validated JSON to arguments: parameters by name, from fields."""
    validate = model.__pydantic_validator__.validate_python  # model_validate, without its checks of options

    def bind(arguments: JSONObject) -> dict[str, Any]:
        try:
            # Only the names in the schema: policy has decided by them.
            converted = validate(arguments, by_alias=True, by_name=False)
        except pydantic.ValidationError as error:
            raise Refused(Reason.BAD_ARGUMENTS, _findings(error)) from None
        values: dict[str, Any] = {}
        for name, field in names:
            values[name] = getattr(converted, field)
        if context is not None:
            values[context] = Context()
        return values

    return bind


def _bind_as_given(function: Callable[..., Any], hints: dict[str, Any]) -> _Bind:
    contexts = [name for name, hint in hints.items() if name != "return" and _is_context(hint)]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (*_KEYWORD_KINDS, inspect.Parameter.VAR_KEYWORD):
            raise BadTool(
                f"{place_of(function)}: parameter {parameter} cannot be passed by name; give each one a name"
            )

    def bind(arguments: JSONObject) -> dict[str, Any]:
        return {**arguments, **{name: Context() for name in contexts}}

    return bind


# Types that may hold anything: content in them can only be detected in the result.
_OPEN: Final = (Any, object, list, tuple, dict)


def _is_open(hint: Any) -> bool:
    return any(hint is each for each in _OPEN) or any(_is_open(each) for each in typing.get_args(hint))


def _is_content(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, Content):
        return True
    return any(_is_content(each) for each in typing.get_args(hint))


def _as_content(value: Any) -> Any:
    try:
        return blocks_of(value)
    except TypeError as error:
        raise Failed(Reason.BAD_RESULT, (Finding("", str(error), "content", ""),)) from None


def _is_context(hint: Any) -> bool:
    return hint is Context or Context in typing.get_args(hint)


def _result(hints: dict[str, Any]) -> tuple[_Finish, JSONObject | bool]:
    hint = hints.get("return", Any)
    if hint is Any:
        return _finisher(to_jsonable_python, is_open=True), True
    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hint)
    # dump_python, without its checks of options
    dump = partial(adapter.serializer.to_python, mode="json", by_alias=True, warnings=False)
    return _finisher(dump, is_open=_is_open(hint)), schema_of(
        lambda: adapter.json_schema(schema_generator=TypeSchemas, mode="serialization")
    )


def _finisher(dump: _Finish, *, is_open: bool) -> _Finish:
    """Return a function that serializes a result, in which content is a mistake."""

    def finish(value: Any) -> Any:
        if isinstance(value, Content):
            raise _undeclared(value)
        if is_open and isinstance(value, list | tuple | dict):
            _require_no_content(cast("Any", value))
        try:
            return dump(value)
        except ValueError:
            raise _not_serializable() from None

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
    try:
        return to_jsonable_python(value)
    except ValueError:
        raise _not_serializable() from None


def _not_serializable() -> Failed:
    """Return the failure of a result that is circular, or has bytes that are not UTF-8."""
    finding = Finding("", "has a part that cannot be written as JSON", "json", "")
    return Failed(Reason.BAD_RESULT, (finding,))


def _findings(error: pydantic.ValidationError) -> tuple[Finding, ...]:
    # pydantic's messages may quote the value, so only the type of error is reported.
    return tuple(
        sorted(
            Finding(escape_pointer(problem["loc"]), f"not accepted ({problem['type']})", problem["type"], "")
            for problem in error.errors(include_url=False, include_context=False, include_input=False)
        )
    )


def place_of(function: Callable[..., Any]) -> str:
    """Return the name and location of a function, for messages."""
    code = getattr(function, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"tool function {getattr(function, '__name__', function)!s}{where}"
