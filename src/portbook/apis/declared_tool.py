"""A tool of an HTTP API that a table of the settings declares. Pure: no I/O."""

from __future__ import annotations

from typing import Any, Final

from portbook.apis.effects import READING_METHODS, default_effect
from portbook.apis.gateway import Gateway
from portbook.apis.gateway_table import is_argument_header
from portbook.apis.table_reader import Table
from portbook.apis.tool_limits import MAX_RESPONSE_BYTES, MAX_RETRIES, MAX_TIMEOUT_MS
from portbook.tools.http_methods import METHODS
from portbook.tools.media_types import is_media_type
from portbook.tools.operation import HttpOperation, Parameter, ParameterPlace, problem_of_path, split_path
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.tool_names import canonical_name

__all__ = ["TOOL_KEYS", "declared_tool"]

TOOL_KEYS: Final = (
    "body",
    "description",
    "effect",
    "header",
    "idempotent",
    "input",
    "max_response_bytes",
    "method",
    "output",
    "path",
    "query",
    "response",
    "retries",
    "timeout_ms",
)


def declared_tool(table: Table, name: str, gateway: Gateway) -> ToolSpec:
    """Return the tool that a table declares.

    Raises what the table raises where a value is not valid.
    """
    method = (table.text("method") or "").upper()
    if method not in METHODS:
        raise table.wrong("method", f"must be one of {', '.join(METHODS)}")
    path = _path(table)
    effect = Effect(table.choice("effect", Effect) or default_effect(method))
    response = table.text("response") or "application/json"
    if not is_media_type(response):
        raise table.wrong("response", "must be a content type, such as application/json, in lower case")
    operation = HttpOperation(
        gateway.name,
        gateway.base_url,
        method,
        path,
        parameters=_parameters(table, gateway),
        body=table.text("body"),
        is_idempotent=_is_idempotent(table, method, effect),
        retries=table.whole("retries", 0, MAX_RETRIES),
        max_response_bytes=table.whole("max_response_bytes", 1, MAX_RESPONSE_BYTES),
        response=response,
        is_proposed=gateway.is_proposed,
    )
    schema = table.schema("input")
    if isinstance(schema, bool):
        raise table.wrong("input", "must be a table: the JSON Schema of an object")
    output = table.schema("output")
    return ToolSpec(
        canonical_name(name),
        table.text("description") or f"{method} {path}",
        _input_of(split_path(path)[1]) if schema is None else schema,
        True if output is None else output,
        effect,
        operation=operation,
        timeout_ms=table.whole("timeout_ms", 1, MAX_TIMEOUT_MS),
        declared_name=name,
    )


def _path(table: Table) -> str:
    path = table.text("path") or ""
    problem = problem_of_path(path)
    if problem is not None:
        raise table.wrong("path", problem)
    return path


def _input_of(names: list[str]) -> dict[str, Any]:
    """Return the schema of a tool that declares none: the arguments in its path, and no others."""
    properties = {name: {"type": "string", "minLength": 1} for name in names}
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _parameters(table: Table, gateway: Gateway) -> tuple[Parameter, ...]:
    found = [Parameter(name, ParameterPlace.QUERY, name) for name in table.texts("query") or ()]
    headers = table.table("header") if "header" in table else None
    for argument in headers or ():
        assert headers is not None
        header = headers.text(argument) or ""
        if not is_argument_header(header, gateway):
            raise headers.wrong(
                argument, "must be the name of a header that is not Portbook's own and not a credential"
            )
        found.append(Parameter(argument, ParameterPlace.HEADER, header))
    return tuple(found)


def _is_idempotent(table: Table, method: str, effect: Effect) -> bool:
    """Return whether the operation is idempotent; by default, only reading is."""
    given = table.switch("idempotent")
    return method in READING_METHODS and effect is Effect.READ if given is None else given
