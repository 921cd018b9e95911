"""Reads the `[http]` table of the settings into tools, declared there or imported from OpenAPI documents.

`[http.orders.tools.get_order]` is the tool `orders.get_order`. Both parts may have capitals and
hyphens, as the names of Python tools may. A table with the name of an imported tool changes the keys it has
(an effect, a deadline) and keeps the rest of the document; one with a path replaces the tool.

An unusable base URL is a warning, not an error: its tools are served and every call of them is denied, as for
any destination that is not on the allowlist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from portbook.apis.effects import READING_METHODS, default_effect
from portbook.apis.gateway import Gateway
from portbook.apis.gateway_table import GATEWAY_KEYS, is_argument_header, read_base_url, read_gateway
from portbook.apis.import_selection import ImportSelection
from portbook.apis.imported_documents import (
    DOCUMENT_KEYS,
    ImportedDocuments,
    PlacedOperation,
    read_documents,
)
from portbook.apis.left_out import Cause, LeftOutOperation, summary_of
from portbook.apis.openapi.operation_reader import ImportedOperation
from portbook.apis.request_composer import Composer
from portbook.apis.table_reader import Complain, Table
from portbook.schema.cache import validator_for
from portbook.schema.engine import BadSchema
from portbook.tools.http_methods import METHODS
from portbook.tools.media_types import is_media_type
from portbook.tools.operation import (
    HttpOperation,
    Parameter,
    ParameterPlace,
    problem_of_base_url,
    problem_of_path,
    split_path,
)
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.tool_names import canonical_name, is_declarable

__all__ = ["HttpTools", "read_http"]

_TOOL_KEYS: Final = (
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
# The keys of an imported tool that a table may change without replacing the tool.
_ADJUSTABLE: Final = (
    "description", "effect", "idempotent", "max_response_bytes", "output", "retries", "timeout_ms",
)  # fmt: skip
# Models choose badly among more tools than this, and some clients list no more.
_MANY_TOOLS: Final = 100
_MAX_TIMEOUT_MS: Final = 86_400_000
_MAX_RETRIES: Final = 10
_MAX_RESPONSE_BYTES: Final = 67_108_864


class HttpTools(NamedTuple):
    """The tools and gateways that the `[http]` table declares."""

    specs: list[ToolSpec]
    gateways: list[Gateway]
    warnings: list[str]
    left_out: list[LeftOutOperation]
    """The operations of OpenAPI documents that are not served."""


def read_http(
    tables: Mapping[str, Any], environ: Mapping[str, str], folder: Path, complain: Complain
) -> HttpTools:
    """Return the tools and gateways that the `[http]` table declares; its paths are relative to `folder`.

    Raises the exception of `complain` where a value is not valid.
    """
    found = HttpTools([], [], [], [])
    for name, value in tables.items():
        table = Table(value, ("http", name), complain)
        if not is_declarable(name) or "." in name:
            raise table.wrong(None, "is not a valid name for a gateway; use A-Z, a-z, 0-9, '_' and '-'")
        table.only((*GATEWAY_KEYS, *DOCUMENT_KEYS, "timeout_ms", "tools", "unchecked_outputs"))
        base_url = read_base_url(table, environ)
        gateway = read_gateway(name, table, base_url or "", folder)
        documents = read_documents(table, gateway, base_url, folder)
        server = documents.server
        gateway = replace(gateway, base_url=server.base_url, is_proposed=server.is_proposed)
        problem = problem_of_base_url(gateway.base_url)
        if problem is not None:
            found.warnings.append(f"http.{name}.base_url: {problem}; calls of its tools are denied")
        found.gateways.append(gateway)
        found.warnings.extend(documents.warnings)
        found.specs.extend(_specs(table, gateway, documents, found))
    return found


def _specs(table: Table, gateway: Gateway, documents: ImportedDocuments, found: HttpTools) -> list[ToolSpec]:
    timeout_ms = table.whole("timeout_ms", 1, _MAX_TIMEOUT_MS)
    prefix = f"{gateway.name}."
    imported = {prefix + each.operation.name: each.operation for each in documents.operations}
    specs = {
        prefix + each.operation.name: _spec_of(each, prefix, gateway, documents.selection)
        for each in documents.operations
    }
    declared = table.table("tools") if "tools" in table else ()
    for name in declared:
        assert isinstance(declared, Table)
        one = declared.table(name)
        one.only(_TOOL_KEYS)
        full = prefix + name
        if not is_declarable(full):
            raise one.wrong(None, "is not a valid name for a tool; use A-Z, a-z, 0-9, '_', '-' and '.'")
        if full in specs and "path" not in one and "method" not in one:
            specs[full] = _adjusted(one, specs[full])
        else:
            specs[full] = _declared(one, full, gateway)
            imported.pop(full, None)
    left_out = [replace(each, name=prefix + each.name) for each in documents.left_out]
    left_out.extend(_without_usable_results(table, imported, specs, found.warnings))
    found.left_out.extend(left_out)
    if left_out:
        found.warnings.append(summary_of(left_out, documents.total, ", ".join(documents.names)))
    if documents.total and not specs:
        found.warnings.append(f"http.{gateway.name}.openapi: none of its operations is served")
    if len(specs) > _MANY_TOOLS and not documents.selection.is_given:
        advice = "choose with tags, include or exclude; `portbook tools --tree` shows them by tag"
        found.warnings.append(str(table.wrong("openapi", f"becomes {len(specs)} tools; {advice}")))
    return [_completed(spec, timeout_ms) for spec in specs.values()]


def _without_usable_results(
    table: Table, imported: dict[str, ImportedOperation], specs: dict[str, ToolSpec], warnings: list[str]
) -> list[LeftOutOperation]:
    """Take the tools whose results cannot be checked out of `specs`, and return why.

    They stay, marked as unchecked, where the operator allows it.
    """
    is_allowed = table.choice("unchecked_outputs", ("leave-out", "allow")) == "allow"
    left_out: list[LeftOutOperation] = []
    unchecked: list[str] = []
    for name, operation in imported.items():
        problem = _problem_of_result(operation, specs[name])
        if problem is None:
            continue
        if is_allowed:
            unchecked.append(name)
            specs[name] = replace(specs[name], output_schema=True, is_result_unchecked=True)
        else:
            left_out.append(operation._replace(name=name).left_out(Cause.OUTPUT_SCHEMA, problem))
            del specs[name]
    if unchecked:
        what = f"lets {len(unchecked)} tools give results that are not checked, such as {unchecked[0]}"
        warnings.append(str(table.wrong("unchecked_outputs", what)))
    return left_out


def _problem_of_result(operation: ImportedOperation, spec: ToolSpec) -> str | None:
    """Return why the result of an imported tool cannot be checked, or None where it can.

    A table may have replaced the document's output schema.
    """
    if spec.are_schemas_checked:
        return operation.output_problem
    try:
        validator_for(spec.output_schema)
    except BadSchema as error:
        return str(error)
    return None


def _completed(spec: ToolSpec, timeout_ms: int | None) -> ToolSpec:
    """Return `spec` with the gateway's deadline where it has none, and with what its operation determines."""
    operation = spec.operation
    assert operation is not None
    # Without a usable base URL, every call is denied before its arguments are checked.
    refuse = None if operation.destination is None else Composer(operation).refuse
    return replace(
        spec,
        timeout_ms=spec.timeout_ms or timeout_ms,
        refuse=refuse,
        gives_content=operation.gives_content,
    )


# -- tools of a table


def _declared(table: Table, name: str, gateway: Gateway) -> ToolSpec:
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
        retries=table.whole("retries", 0, _MAX_RETRIES),
        max_response_bytes=table.whole("max_response_bytes", 1, _MAX_RESPONSE_BYTES),
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
        timeout_ms=table.whole("timeout_ms", 1, _MAX_TIMEOUT_MS),
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


# -- tools of an OpenAPI document


def _spec_of(placed: PlacedOperation, prefix: str, gateway: Gateway, selection: ImportSelection) -> ToolSpec:
    operation = placed.operation
    name = prefix + operation.name
    effect = selection.effect_of(operation.name) or default_effect(operation.method)
    words = operation.description
    return ToolSpec(
        canonical_name(name),
        f"Deprecated. {words}" if operation.is_deprecated else words,
        operation.input_schema,
        operation.output_schema,
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
        tags=operation.tags,
        is_deprecated=operation.is_deprecated,
    )


def _adjusted(table: Table, spec: ToolSpec) -> ToolSpec:
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
        are_schemas_checked=output is None,
        effect=effect,
        timeout_ms=table.whole("timeout_ms", 1, _MAX_TIMEOUT_MS),
        operation=replace(
            operation,
            is_idempotent=idempotent,
            retries=table.whole("retries", 0, _MAX_RETRIES),
            max_response_bytes=table.whole("max_response_bytes", 1, _MAX_RESPONSE_BYTES),
        ),
    )
