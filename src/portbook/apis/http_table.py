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
from typing import Any, NamedTuple

from portbook.apis.declared_tool import TOOL_KEYS, declared_tool
from portbook.apis.gateway import Gateway
from portbook.apis.gateway_table import GATEWAY_KEYS, read_base_url, read_gateway
from portbook.apis.imported_documents import DOCUMENT_KEYS, ImportedDocuments, read_documents
from portbook.apis.imported_tool import adjusted_tool, imported_tool
from portbook.apis.left_out import LeftOutOperation, summary_of
from portbook.apis.many_tools import hint_of_many_tools
from portbook.apis.request_composer import Composer
from portbook.apis.table_reader import Complain, Table
from portbook.apis.tool_limits import MAX_TIMEOUT_MS
from portbook.apis.unchecked_results import without_usable_results
from portbook.did_you_mean import did_you_mean
from portbook.tools.operation import problem_of_base_url
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
        full = prefix + name
        if not is_declarable(full):
            raise one.wrong(None, "is not a valid name for a tool; use A-Z, a-z, 0-9, '_', '-' and '.'")
        if full in specs and "path" not in one and "method" not in one:
            specs[full] = adjusted_tool(one, specs[full])
        else:
            if documents.names and "method" not in one and "path" not in one:
                raise one.wrong(None, _no_operation(name, documents))
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


def _no_operation(name: str, documents: ImportedDocuments) -> str:
    """Return what to do about a table that changes an operation which the documents do not have."""
    known = [each.operation.name for each in documents.operations]
    hint = did_you_mean(name, known, "`portbook tools` lists those that are served")
    if any(each.name == name for each in documents.left_out):
        return "changes an operation that is left out; `portbook tools --left-out` says why"
    return f"changes an operation that the document does not have; {hint}; a new tool needs method and path"


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
