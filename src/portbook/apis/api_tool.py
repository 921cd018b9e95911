"""A tool of an HTTP API: imported from a document, or declared by a table of the settings. Pure: no I/O."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from portbook.apis.effect_by_method import READING_METHODS, default_effect
from portbook.apis.gateway import Gateway, is_argument_header
from portbook.apis.import_selection import ImportSelection
from portbook.apis.imported_documents import PlacedOperation
from portbook.apis.openapi.operation_reader import ImportedOperation
from portbook.apis.output_schemas import is_small_enough_to_list, or_nothing
from portbook.apis.table_reader import Table
from portbook.model import JSONObject
from portbook.tools.http_methods import METHODS
from portbook.tools.http_operation import (
    HttpOperation,
    Parameter,
    ParameterPlace,
    problem_of_path,
    split_path,
)
from portbook.tools.media_types import is_media_type
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.tool_names import canonical_name

__all__ = [
    "MAX_RESPONSE_BYTES",
    "MAX_RETRIES",
    "MAX_TIMEOUT_MS",
    "TOOL_KEYS",
    "adjusted_tool",
    "declared_tool",
    "imported_tool",
]

# A tool of an HTTP API that a table of the settings declares.

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


# The keys of an imported tool that a table may change without replacing the tool.
_ADJUSTABLE: Final = (
    "description", "effect", "idempotent", "max_response_bytes", "output", "retries", "timeout_ms",
)  # fmt: skip


def imported_tool(
    placed: PlacedOperation,
    prefix: str,
    gateway: Gateway,
    selection: ImportSelection,
    *,
    lists_every_output: bool = False,
) -> ToolSpec:
    """Return the tool of an operation, with the effect that the settings or its method say.

    A large output schema is listed only if the operator `lists_every_output`.
    """
    operation = placed.operation
    name = prefix + operation.name
    effect = selection.effect_of(operation) or default_effect(operation.method)
    words, output = operation.description, _output(operation, operation.output_schema)
    return ToolSpec(
        canonical_name(name),
        f"Deprecated. {words}" if operation.is_deprecated else words,
        operation.input_schema,
        output,
        effect,
        operation=HttpOperation(
            gateway.name,
            placed.server.base_url,
            operation.method,
            operation.path,
            parameters=operation.parameters,
            credentials=placed.credentials.uses,
            lacks=placed.credentials.lacks,
            is_proposed=placed.server.is_proposed,
            is_elsewhere=placed.is_elsewhere,
            headers=operation.headers,
            body=operation.body,
            has_body=operation.has_body,
            parts=operation.parts,
            is_idempotent=operation.method in READING_METHODS and effect is Effect.READ,
            request=operation.request,
            response=operation.response,
            other_responses=operation.other_responses,
        ),
        declared_name=name,
        are_schemas_checked=True,
        is_output_listed=lists_every_output or is_small_enough_to_list(output),
        tags=operation.tags,
        is_deprecated=operation.is_deprecated,
        outputs_by_status=tuple(
            (status, _output(operation, schema)) for status, schema in operation.outputs_by_status
        ),
    )


def _output(operation: ImportedOperation, schema: JSONObject | bool) -> JSONObject | bool:
    """Return what the operation may answer: one that does something may always answer with nothing."""
    return schema if operation.method in READING_METHODS else or_nothing(schema)


def adjusted_tool(table: Table, spec: ToolSpec) -> ToolSpec:
    """Return an imported tool with the keys that a table changes.

    Raises what the table raises where a value is not valid.
    """
    table.only(_ADJUSTABLE)
    operation = spec.operation
    assert operation is not None
    effect = Effect(table.choice("effect", Effect) or spec.effect)
    idempotent = table.switch("idempotent")
    if idempotent is None:
        idempotent = operation.is_idempotent and effect is Effect.READ
    output = table.schema("output")
    return replace(
        spec,
        description=table.text("description") or spec.description,
        output_schema=spec.output_schema if output is None else output,
        outputs_by_status=spec.outputs_by_status if output is None else (),
        are_schemas_checked=output is None,
        is_output_listed=spec.is_output_listed or output is not None,
        effect=effect,
        timeout_ms=table.whole("timeout_ms", 1, MAX_TIMEOUT_MS),
        operation=replace(
            operation,
            is_idempotent=idempotent,
            retries=table.whole("retries", 0, MAX_RETRIES),
            max_response_bytes=table.whole("max_response_bytes", 1, MAX_RESPONSE_BYTES),
        ),
    )


# The most that a table of the settings may ask for a tool of an HTTP API.

MAX_TIMEOUT_MS: Final = 86_400_000
MAX_RETRIES: Final = 10
MAX_RESPONSE_BYTES: Final = 67_108_864
