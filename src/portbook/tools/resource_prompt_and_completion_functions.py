"""Resource, prompt and completion specs from functions, and what becomes of what these return."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast

from portbook.canonical import json_bytes
from portbook.errors import Failed, Finding, Reason
from portbook.exception_place import place_of as fault_of
from portbook.model import JSON, JSONObject
from portbook.schema.json_schema_drafts import DIALECT
from portbook.tools.content_blocks import Blob, Message, block_of, items_of
from portbook.tools.function_arguments_and_input_schema import UNUSABLE_HINTS, bind_arguments, unusable_hints
from portbook.tools.function_results import jsonable, runner
from portbook.tools.mistake_place import declared_at
from portbook.tools.spec import BadTool, Complete, Effect, NotFound, Switch, ToolSpec

__all__ = ["specs_from_prompt", "specs_from_resource"]

# The arguments of a completion: the name of one argument, the text typed so far, and the other arguments that
# were given before it.
_COMPLETION_INPUT: Final[JSONObject] = {
    "$schema": DIALECT,
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "value": {"type": "string"},
        "given": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["name", "value"],
    "additionalProperties": False,
}
_COMPLETION_OUTPUT: Final[JSONObject] = {"$schema": DIALECT, "type": "array", "items": {"type": "string"}}


def specs_from_resource(
    uri: str,
    function: Callable[..., Any],
    *,
    names: tuple[str, ...],
    description: str | None,
    shown: JSONObject,
    complete: Mapping[str, Complete],
    timeout_ms: int | None,
    cache_ms: int,
    switch: Switch,
) -> list[ToolSpec]:
    """Return the spec of the resource that `function` reads, and of its template's completion.

    Raises `BadTool` where the function's parameters are not the template's names.
    """
    bind, schema = _bound(function)
    if set(cast("JSONObject", schema["properties"])) != set(names):
        raise BadTool(f"{declared_at(function)}: its parameters must be the names in {uri!r}; rename them")
    mime_type = shown.get("mimeType")

    def finish(value: Any) -> Any:
        if value is None:
            raise Failed(Reason.UNKNOWN_RESOURCE, note="the function returned None")
        if not isinstance(value, str | bytes | Blob | list | tuple):
            value = _as_text(value)
        parts = _with_findings(lambda: _contents_of(value))
        return [part if mime_type is None else {"mimeType": mime_type, **part} for part in parts]

    spec = ToolSpec(
        name=uri,
        description=description or inspect.getdoc(function) or "",
        input_schema=schema,
        output_schema=True,
        effect=Effect.READ,
        function=_finding(function, runner(function, bind, finish)),
        is_async=inspect.iscoroutinefunction(function),
        timeout_ms=timeout_ms,
        kind="resource",
        shown=shown,
        switch=switch,
        author=function,
        cache_ms=cache_ms,
    )
    return [spec, _completion(function, uri, "resource", complete, names, switch)]


def specs_from_prompt(
    name: str,
    function: Callable[..., Any],
    *,
    description: str | None,
    shown: JSONObject,
    complete: Mapping[str, Complete],
    timeout_ms: int | None,
    switch: Switch,
) -> list[ToolSpec]:
    """Return the spec of the prompt that `function` returns, and of its arguments' completion.

    Raises `BadTool` where a parameter is not a string.
    """
    bind, schema = _bound(function)
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    spec = ToolSpec(
        name=name,
        description=description or inspect.getdoc(function) or "",
        input_schema=schema,
        output_schema=True,
        effect=Effect.READ,
        function=runner(function, bind, lambda value: _with_findings(lambda: _messages_of(value))),
        is_async=inspect.iscoroutinefunction(function),
        timeout_ms=timeout_ms,
        kind="prompt",
        shown=shown,
        switch=switch,
        author=function,
    )
    return [spec, _completion(function, name, "prompt", complete, tuple(properties), switch)]


def _bound(function: Callable[..., Any]) -> tuple[Callable[[JSONObject], dict[str, Any]], JSONObject]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        bind, schema = bind_arguments(function, hints)
    except BadTool:
        raise
    except UNUSABLE_HINTS as error:
        raise unusable_hints(function, error) from None
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    for name, described in properties.items():
        if not isinstance(described, dict) or described.get("type", "string") != "string":
            raise BadTool(
                f"{declared_at(function)}: parameter {name} must be a str: clients send strings; hint it so"
            )
    return bind, schema


def _completion(
    function: Callable[..., Any],
    name: str,
    of: Literal["prompt", "resource"],
    complete: Mapping[str, Complete],
    arguments: tuple[str, ...],
    switch: Switch,
) -> ToolSpec:
    for argument in complete:
        if argument not in arguments:
            said = f"complete names {argument!r}, which is not one of its arguments; use their names"
            raise BadTool(f"{declared_at(function)}: {of} {name!r}: {said}")

    def run(given: JSONObject) -> list[str]:
        source, value = complete.get(str(given["name"]), ()), str(given["value"])
        if callable(source):
            return [str(each) for each in source(value)]
        return [each for each in source if each.startswith(value)]

    return ToolSpec(
        name=name,
        description="",
        input_schema=_COMPLETION_INPUT,
        output_schema=_COMPLETION_OUTPUT,
        effect=Effect.READ,
        function=run,
        is_inline=not any(callable(source) for source in complete.values()),
        kind="completion",
        completes=of,
        switch=switch,
    )


def _finding(function: Callable[..., Any], run: Callable[[JSONObject], Any]) -> Callable[[JSONObject], Any]:
    """Wrap the reader of a resource so that `NotFound` becomes `Failed`."""

    def read(arguments: JSONObject) -> Any:
        try:
            return run(arguments)
        except NotFound as error:
            raise Failed(Reason.UNKNOWN_RESOURCE, note=fault_of(error)) from None

    async def read_async(arguments: JSONObject) -> Any:
        try:
            return await run(arguments)
        except NotFound as error:
            raise Failed(Reason.UNKNOWN_RESOURCE, note=fault_of(error)) from None

    return read_async if inspect.iscoroutinefunction(function) else read


def _messages_of(value: Any) -> list[JSONObject]:
    """Return a prompt's result as MCP messages; plain text and content become messages of the user.

    Raises `TypeError` where an item is neither a message, content nor text.
    """
    return [
        item.as_json()
        if isinstance(item, Message)
        else {"role": "user", "content": cast("JSON", block_of(item))}
        for item in items_of(value)
    ]


def _contents_of(value: Any) -> list[JSONObject]:
    """Return a resource's result as MCP resource contents; plain text or bytes are one part.

    Raises `TypeError` where an item is neither text, bytes nor `Blob`.
    """
    parts: list[JSONObject] = []
    for item in items_of(value):
        if isinstance(item, Blob):
            parts.append(item.as_json())
        elif isinstance(item, str | bytes):
            parts.append(Blob(item).as_json())
        else:
            raise TypeError("a resource returns text, bytes, Blob, or a list of them")
    return parts


def _with_findings(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except TypeError as error:
        raise Failed(Reason.BAD_RESULT, (Finding("", str(error), "content", ""),)) from None


def _as_text(value: Any) -> str:
    return json_bytes(jsonable(value)).decode()
