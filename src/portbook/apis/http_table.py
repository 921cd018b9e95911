"""Reads the `[http]` table of the settings into tools, declared there or imported from OpenAPI documents.

`[http.orders.tools.get_order]` is the tool `orders.get_order`. Both parts may have capitals and
hyphens, as the names of Python tools may. A table with the name of an imported tool changes the keys it has
(an effect, a deadline) and keeps the rest of the document; one with a path replaces the tool. The table of an
imported tool may have its method and path instead of its name.

An unusable base URL is a warning, not an error: its tools are served and every call of them is denied, as for
any destination that is not on the allowlist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from portbook.apis.api_tool import MAX_TIMEOUT_MS, TOOL_KEYS, adjusted_tool, declared_tool, imported_tool
from portbook.apis.described_members import described_members
from portbook.apis.gateway import GATEWAY_KEYS, Gateway, read_base_url, read_gateway
from portbook.apis.import_selection import missing_operation
from portbook.apis.imported_documents import DOCUMENT_KEYS, ImportedDocuments, read_documents
from portbook.apis.left_out_operations import LeftOutOperation, summary_of
from portbook.apis.many_tools import hint_of_many_tools
from portbook.apis.output_schemas import without_usable_results
from portbook.apis.request_composer import Composer
from portbook.apis.table_reader import Complain, Table
from portbook.model import JSONObject
from portbook.tools.http_operation import HttpOperation, problem_of_base_url
from portbook.tools.media_types import MediaKind, kind_of
from portbook.tools.spec import ToolSpec
from portbook.tools.tool_names import is_declarable

__all__ = ["HttpTools", "read_http"]


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
