"""A tool's contract from a function's type hints, through pydantic.

JSON Schema gives the verdict on arguments; pydantic only converts what passed, and turns results into JSON.
The one module that imports pydantic: it is loaded only where functions are served.
"""

from __future__ import annotations

import inspect
import typing
import warnings
from collections.abc import Callable
from typing import Any

import pydantic
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, SchemaError, core_schema, to_jsonable_python

from portbook.canonical import NotJSON, json_bytes
from portbook.errors import Failed, Finding, Reason, Refused
from portbook.model import JSONObject
from portbook.schema.references import DIALECT
from portbook.schema.wording import escape_pointer
from portbook.tools.context import Context
from portbook.tools.spec import BadTool, Effect, ToolSpec

__all__ = ["spec_from_function"]

_KEYWORD_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class _Schemas(GenerateJsonSchema):
    """Schemas without titles made up from names, and with patterns that match in linear time."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        made = super().encode_default(dft)
        try:
            json_bytes(made)
        except NotJSON as error:  # NaN, for one; this is how pydantic itself says it
            raise PydanticSerializationError(str(error)) from None
        return made

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        made = super().decimal_schema(schema)
        for form in made.get("anyOf", [made]):
            if "pattern" in form:  # pydantic's own needs lookahead
                form["pattern"] = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$"
        return made


def spec_from_function(
    name: str,
    function: Callable[..., Any],
    *,
    description: str | None,
    effect: Effect,
    is_effect_declared: bool = True,
    is_inline: bool,
    timeout_ms: int | None,
) -> ToolSpec:
    """Return the tool that `function` is.

    Raises `BadTool` where its signature cannot be a tool's.
    """
    is_async = inspect.iscoroutinefunction(function)
    if is_async and is_inline:
        raise BadTool(f"{_place(function)}: inline is for plain functions; drop it or drop async")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        bind, input_schema = _arguments(function, hints)
        finish, output_schema = _result(hints)
    except BadTool:
        raise
    except (pydantic.PydanticUserError, SchemaError, NameError, TypeError, ValueError) as error:
        raise BadTool(f"{_place(function)}: its type hints make no schema: {_line_of(error)}") from None
    return ToolSpec(
        name=name,
        description=description or inspect.getdoc(function) or "",
        input_schema=input_schema,
        output_schema=output_schema,
        effect=effect,
        is_effect_declared=is_effect_declared,
        function=_run_async(function, bind, finish) if is_async else _run(function, bind, finish),
        is_async=is_async,
        is_inline=is_inline,
        timeout_ms=timeout_ms,
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


def _run(function: Callable[..., Any], bind: _Bind, finish: _Finish) -> Callable[[JSONObject], Any]:
    def run(arguments: JSONObject) -> Any:
        return finish(function(**bind(arguments)))

    return run


def _run_async(function: Callable[..., Any], bind: _Bind, finish: _Finish) -> Callable[[JSONObject], Any]:
    async def run(arguments: JSONObject) -> Any:
        return finish(await function(**bind(arguments)))

    return run


def _arguments(function: Callable[..., Any], hints: dict[str, Any]) -> tuple[_Bind, JSONObject]:
    # Fields get names of our own: a parameter may be called `schema` or `_x`, a model's field may not.
    fields: dict[str, Any] = {}
    names: list[tuple[str, str]] = []
    context: str | None = None
    for at, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind not in _KEYWORD_KINDS:
            raise BadTool(
                f"{_place(function)}: parameter {parameter} cannot be passed by name; give each one a name"
            )
        if _is_context(hints.get(parameter.name)):
            if context is not None:
                raise BadTool(f"{_place(function)}: one parameter may be a Context; drop {parameter.name}")
            context = parameter.name  # ours to give, not the caller's to send
            continue
        if isinstance(parameter.default, FieldInfo):
            raise BadTool(
                f"{_place(function)}: parameter {parameter.name} has a Field as its default, which a plain "
                f"call would pass on as the value; write {parameter.name}: Annotated[..., Field(...)] instead"
            )
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[f"p{at}"] = (hints.get(parameter.name, Any), pydantic.Field(default, alias=parameter.name))
        names.append((parameter.name, f"p{at}"))
    model = pydantic.create_model("Arguments", __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    schema = _schema_of(lambda: model.model_json_schema(schema_generator=_Schemas, mode="validation"))
    schema.pop("title", None)
    schema.setdefault("properties", {})

    validate = (
        model.__pydantic_validator__.validate_python
    )  # model_validate without its own checks of options

    def bind(arguments: JSONObject) -> dict[str, Any]:
        try:
            converted = validate(arguments)
        except pydantic.ValidationError as error:
            raise Refused(Reason.BAD_ARGUMENTS, _findings(error)) from None
        values = {name: getattr(converted, field) for name, field in names}
        return values if context is None else {**values, context: Context()}

    return bind, schema


def _is_context(hint: Any) -> bool:
    return hint is Context or Context in typing.get_args(hint)


def _result(hints: dict[str, Any]) -> tuple[_Finish, JSONObject | bool]:
    hint = hints.get("return", Any)
    if hint is Any:
        return _guarded(to_jsonable_python), True
    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hint)

    to_python = adapter.serializer.to_python  # dump_python without its own checks of options

    def dump(value: Any) -> Any:
        return to_python(value, mode="json", by_alias=True, warnings=False)

    return _guarded(dump), _schema_of(
        lambda: adapter.json_schema(schema_generator=_Schemas, mode="serialization")
    )


def _guarded(dump: _Finish) -> _Finish:
    def finish(value: Any) -> Any:
        try:
            return dump(value)
        except (
            ValueError
        ):  # PydanticSerializationError, and what it is not: circles, bytes that are not UTF-8
            finding = Finding("", "has a part that cannot be written as JSON", "json", "")
            raise Failed(Reason.BAD_RESULT, (finding,)) from None

    return finish


def _schema_of(make: Callable[[], dict[str, Any]]) -> JSONObject:
    with warnings.catch_warnings():
        # A default that JSON cannot hold is left out of the schema, and still applies.
        warnings.simplefilter("ignore", pydantic.json_schema.PydanticJsonSchemaWarning)
        return {"$schema": DIALECT, **make()}


def _findings(error: pydantic.ValidationError) -> tuple[Finding, ...]:
    # pydantic's sentences may quote the value: only the kind of error is told.
    return tuple(
        sorted(
            Finding(escape_pointer(problem["loc"]), f"not accepted ({problem['type']})", problem["type"], "")
            for problem in error.errors(include_url=False, include_context=False, include_input=False)
        )
    )


def _line_of(error: Exception) -> str:
    # pydantic says it first and then explains; its core first says where, and last what.
    return str(error).splitlines()[-1 if isinstance(error, SchemaError) else 0]


def _place(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"tool function {getattr(function, '__name__', function)!s}{where}"
