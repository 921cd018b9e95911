"""Reads the `[http]` table of the settings into tools, declared there or imported from OpenAPI documents.

`[http.orders.tools.get_order]` is the tool `orders.get_order`. Both parts may have capitals and
hyphens, as the names of Python tools may. A table with the name of an imported tool changes the keys it has
(an effect, a deadline) and keeps the rest of the document; one with a path replaces the tool. The table of an
imported tool may have its method and path instead of its name.

An unusable base URL is a warning, not an error: its tools are served and every call of them is denied, as for
any destination that is not on the allowlist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from portbook.apis.arguments_put_into_request import Composer
from portbook.apis.gateway import GATEWAY_KEYS, Gateway, is_argument_header, read_base_url, read_gateway
from portbook.apis.imported_documents import DOCUMENT_KEYS, ImportedDocuments, PlacedOperation, read_documents
from portbook.apis.left_out_operations import LeftOutOperation, summary_of
from portbook.apis.openapi.operations_and_names import ImportedOperation
from portbook.apis.output_schemas import is_small_enough_to_list, or_nothing, without_usable_results
from portbook.apis.selected_operations import ImportSelection, missing_operation
from portbook.apis.table_reader import Complain, Table
from portbook.model import JSONObject
from portbook.tools.http_methods import METHODS
from portbook.tools.http_operation import (
    HttpOperation,
    Parameter,
    ParameterPlace,
    problem_of_base_url,
    problem_of_path,
    split_path,
)
from portbook.tools.media_types import MediaKind, is_media_type, kind_of
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.tool_names import canonical_name, is_declarable

__all__ = [
    "MAX_RESPONSE_BYTES",
    "MAX_RETRIES",
    "MAX_TIMEOUT_MS",
    "READING_METHODS",
    "TOOL_KEYS",
    "HttpTools",
    "adjusted_tool",
    "declared_tool",
    "default_effect",
    "described_members",
    "hint_of_many_tools",
    "imported_tool",
    "read_http",
]


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
            said = f"cannot be used: {problem}; calls of its tools are denied"
            found.warnings.append(str(table.wrong("base_url", said)))
        found.gateways.append(gateway)
        found.warnings.extend(documents.warnings)
        found.specs.extend(_specs(table, gateway, documents, found))
    return found


def _specs(table: Table, gateway: Gateway, documents: ImportedDocuments, found: HttpTools) -> list[ToolSpec]:
    timeout_ms = table.whole("timeout_ms", 1, MAX_TIMEOUT_MS)
    prefix = f"{gateway.name}."
    imported = {prefix + each.operation.name: each.operation for each in documents.operations}
    lists_every_output = table.choice("listed_outputs", ("small", "all")) == "all"
    specs = {
        prefix + each.operation.name: imported_tool(
            each, prefix, gateway, documents.selection, lists_every_output=lists_every_output
        )
        for each in documents.operations
    }
    declared = table.table("tools") if "tools" in table else ()
    for name in declared:
        assert isinstance(declared, Table)
        one = declared.table(name)
        one.only(TOOL_KEYS)
        full = prefix + _named(one, name, documents)
        is_change = documents.names and "path" not in one and "method" not in one
        if is_change and full in specs:
            specs[full] = adjusted_tool(one, specs[full])
        elif is_change:
            missing = missing_operation(name, [each.operation for each in documents.operations])
            raise one.wrong(None, f"{missing}; a new tool needs a method and a path")
        elif not is_declarable(full):
            raise one.wrong(None, "is not a valid name for a tool; use A-Z, a-z, 0-9, '_', '-' and '.'")
        else:
            specs[full] = declared_tool(one, full, gateway)
            imported.pop(full, None)
    left_out = [replace(each, name=prefix + each.name) for each in documents.left_out]
    left_out.extend(without_usable_results(table, imported, specs, found.warnings))
    found.left_out.extend(left_out)
    if left_out:
        summary = summary_of(left_out, documents.total, ", ".join(documents.names))
        found.warnings.append(str(table.wrong("openapi", f"is served in part: {summary}")))
    if documents.total and not specs:
        found.warnings.append(str(table.wrong("openapi", "has operations, and none of them can be served")))
    if not documents.selection.is_given and (hint := hint_of_many_tools(table, len(specs))):
        found.warnings.append(hint)
    return [_completed(spec, timeout_ms) for spec in specs.values()]


def _named(table: Table, key: str, documents: ImportedDocuments) -> str:
    """Return the name of the tool that a table is for: its key, or that of the method and path in its key.

    Raises what the table raises where several operations have this method and path.
    """
    if " /" not in key:
        return key
    names = [each.operation.name for each in documents.operations if key in each.operation.places]
    if len(names) > 1:
        raise table.wrong(None, "names an operation that several documents have; use the name of the tool")
    return names[0] if names else key


def _completed(spec: ToolSpec, timeout_ms: int | None) -> ToolSpec:
    """Return `spec` with the gateway's deadline where it has none, and with what its operation determines."""
    assert spec.operation is not None
    operation = _with_body_members(spec.operation, spec.input_schema)
    # Without a usable base URL, every call is denied before its arguments are checked.
    refuse = None if operation.destination is None else Composer(operation).refuse
    return replace(
        spec,
        operation=operation,
        timeout_ms=spec.timeout_ms or timeout_ms,
        refuse=refuse,
        gives_content=operation.gives_content,
    )


def _with_body_members(operation: HttpOperation, schema: JSONObject) -> HttpOperation:
    """Return `operation` with the members of its body, where the query has names that a body may not use."""
    has_fixed = "?" in operation.path or any(use.place == "query" for use in operation.credentials)
    if not has_fixed or kind_of(operation.request) is not MediaKind.JSON:
        return operation
    return replace(operation, body_members=described_members(schema, operation.body))


# A tool of an HTTP API: imported from a document, or declared by a table of the settings.

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


# The members of a JSON body that its schema describes.
#
# Only what is described may have a name that is fixed in the query; every other name is the caller's
# choice.

_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_DEFINITIONS: Final = "#/$defs/"


def described_members(schema: JSONObject, whole: str | None) -> frozenset[str]:
    """Return the properties of a tool's input, or of its argument `whole`, and of the schemas it combines.

    A reference that leads elsewhere than to a definition describes nothing.
    """
    root = cast("dict[str, Any]", schema)
    first: Any = root if whole is None else _objects(root, "properties").get(whole)
    definitions = _objects(root, "$defs")
    pending, seen, found = [first], set[str](), set[str]()
    while pending:
        each = pending.pop()
        if not isinstance(each, dict):
            continue
        given = cast("dict[str, Any]", each)
        found |= _objects(given, "properties").keys()
        pending.extend(_combined(given))
        reference = given.get("$ref")
        if isinstance(reference, str) and reference.startswith(_DEFINITIONS) and reference not in seen:
            seen.add(reference)  # each definition once: it may lead back
            pending.append(definitions.get(reference.removeprefix(_DEFINITIONS)))
    return frozenset(found)


def _objects(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    """Return the schemas of a keyword by name; none where something else is there."""
    given = schema.get(keyword)
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _combined(schema: dict[str, Any]) -> Iterator[Any]:
    for keyword in _COMBINED:
        given = schema.get(keyword)
        yield from cast("list[Any]", given) if isinstance(given, list) else ()


# The effect of an HTTP operation where nothing declares it: by its method.

# Safe methods (RFC 9110, 9.2.1).
READING_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def default_effect(method: str) -> Effect:
    """Return the effect of an operation with this `method`."""
    if method in READING_METHODS:
        return Effect.READ
    return Effect.DESTRUCTIVE if method == "DELETE" else Effect.WRITE


# The hint that a gateway offers more tools than models choose well among.

# Models choose badly among more tools than this, and some clients list no more.
_MANY_TOOLS: Final = 100


def hint_of_many_tools(table: Table, count: int) -> str | None:
    """Return how to choose among so many tools; None where there are few enough."""
    if count <= _MANY_TOOLS:
        return None
    advice = "choose with tags, include or exclude; `portbook tools --tree` shows them by tag"
    return str(table.wrong("openapi", f"becomes {count} tools; {advice}"))
