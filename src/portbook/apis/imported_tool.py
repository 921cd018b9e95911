"""A tool from an operation of an OpenAPI document, and what a table of the settings changes of it. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from portbook.apis.effects import READING_METHODS, default_effect
from portbook.apis.empty_answers import or_nothing
from portbook.apis.gateway import Gateway
from portbook.apis.import_selection import ImportSelection
from portbook.apis.imported_documents import PlacedOperation
from portbook.apis.listed_outputs import is_small_enough_to_list
from portbook.apis.openapi.operation_reader import ImportedOperation
from portbook.apis.table_reader import Table
from portbook.apis.tool_limits import MAX_RESPONSE_BYTES, MAX_RETRIES, MAX_TIMEOUT_MS
from portbook.model import JSONObject
from portbook.tools.operation import HttpOperation
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.tool_names import canonical_name

__all__ = ["adjusted_tool", "imported_tool"]

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
