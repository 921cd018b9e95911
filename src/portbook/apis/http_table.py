"""Reads the `[http]` table of the settings into tools, declared there or imported from OpenAPI documents.

`[http.orders.tools.get_order]` is the tool `orders.get_order`. Both parts may have capitals and
hyphens, as the names of Python tools may. A table with the name of an imported tool changes the keys it has
(an effect, a deadline) and keeps the rest of the document; one with a path replaces the tool.

An unusable base URL is a warning, not an error: its tools are served and every call of them is denied, as for
any destination that is not on the allowlist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from portbook.apis.effects import READING_METHODS, default_effect
from portbook.apis.gateway import Gateway
from portbook.apis.gateway_table import GATEWAY_KEYS, is_argument_header, read_gateway, sends_cookies
from portbook.apis.left_out import Cause, LeftOutOperation, summary_of
from portbook.apis.openapi_arguments import ArgumentRules
from portbook.apis.openapi_documents import BadOpenAPI, Documents
from portbook.apis.openapi_operation import ImportedOperation
from portbook.apis.openapi_paths import read_openapi
from portbook.apis.request_composer import Composer
from portbook.apis.table_reader import Complain, Table
from portbook.did_you_mean import did_you_mean
from portbook.globs import is_pattern, matches
from portbook.schema.cache import validator_for
from portbook.schema.engine import BadSchema
from portbook.tools.media_types import is_media_type
from portbook.tools.operation import (
    METHODS,
    HttpOperation,
    Parameter,
    ParameterPlace,
    problem_of_base_url,
    problem_of_path,
    split_path,
)
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.tool_names import MAX_NAME, canonical_name, is_declarable

__all__ = ["HttpTools", "read_http"]

_IMPORT_KEYS: Final = ("openapi", "include", "exclude", "effects")
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
# What a gateway's name must leave to the names of imported tools.
_SHORTEST_ROOM: Final = 32
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
        table.only((*GATEWAY_KEYS, *_IMPORT_KEYS, "timeout_ms", "tools"))
        gateway = read_gateway(name, table, environ, folder)
        problem = problem_of_base_url(gateway.base_url)
        if problem is not None:
            found.warnings.append(f"http.{name}.base_url: {problem}; calls of its tools are denied")
        found.gateways.append(gateway)
        found.specs.extend(_specs(table, gateway, folder, found))
    return found


def _specs(table: Table, gateway: Gateway, folder: Path, found: HttpTools) -> list[ToolSpec]:
    timeout_ms = table.whole("timeout_ms", 1, _MAX_TIMEOUT_MS)
    operations = _imported(table, gateway, folder, found)
    prefix = f"{gateway.name}."
    imported = {prefix + each.name: each for each in operations if isinstance(each, ImportedOperation)}
    effects = _effects(table)
    specs = {name: _spec_of(operation, name, gateway, effects) for name, operation in imported.items()}
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
    left_out = [
        replace(each, name=f"{gateway.name}.{each.name}")
        for each in operations
        if isinstance(each, LeftOutOperation)
    ]
    for name, operation in imported.items():
        problem = _problem_of_result(operation, specs[name])
        if problem is not None:
            left_out.append(operation._replace(name=name).left_out(Cause.OUTPUT_SCHEMA, problem))
            del specs[name]
    found.left_out.extend(left_out)
    if left_out:
        found.warnings.append(summary_of(left_out, len(operations), table.text("openapi") or ""))
    if operations and not specs:
        found.warnings.append(f"http.{gateway.name}.openapi: none of its operations is served")
    return [_completed(spec, timeout_ms) for spec in specs.values()]


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
    """Return `spec` with the gateway's deadline where it has none, and with its check of arguments."""
    operation = spec.operation
    assert operation is not None
    # Without a usable base URL, every call is denied before its arguments are checked.
    refuse = None if operation.destination is None else Composer(operation).refuse
    return replace(spec, timeout_ms=spec.timeout_ms or timeout_ms, refuse=refuse)


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


def _imported(
    table: Table, gateway: Gateway, folder: Path, found: HttpTools
) -> list[ImportedOperation | LeftOutOperation]:
    """Return the wanted operations of the gateway's document; none where it has no document."""
    file = table.text("openapi")
    if file is None:
        _refuse_import_keys(table)
        return []
    include, exclude = table.texts("include") or ("*",), table.texts("exclude") or ()
    names: list[str] = []

    def is_wanted(name: str) -> bool:
        names.append(name)
        return matches(include, name) and not matches(exclude, name)

    longest = MAX_NAME - len(f"{gateway.name}.")
    if longest < _SHORTEST_ROOM:
        raise table.wrong(
            None, f"is too long a name for a gateway with a document; cut it by {_SHORTEST_ROOM}"
        )
    try:
        operations = read_openapi(
            Documents(folder / file), is_wanted, _argument_rules(gateway), longest, found.warnings.append
        )
    except BadOpenAPI as error:
        raise table.wrong("openapi", f"cannot be imported: {error}") from None
    for key, patterns in (("include", include), ("exclude", exclude), ("effects", tuple(_effects(table)))):
        found.warnings.extend(_vain_patterns(table, key, patterns, names))
    if not operations:
        found.warnings.append(
            f"http.{gateway.name}.openapi: none of its operations is served; check include and exclude"
        )
    return operations


def _argument_rules(gateway: Gateway) -> ArgumentRules:
    return ArgumentRules(
        lambda header: is_argument_header(header, gateway), takes_cookies=not sends_cookies(gateway)
    )


def _refuse_import_keys(table: Table) -> None:
    for key in ("include", "exclude", "effects"):
        if key in table:
            raise table.wrong(key, "applies to imported tools; set openapi to a document")


def _vain_patterns(table: Table, key: str, patterns: tuple[str, ...], names: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each pattern that matches no operation of the document.

    A name without a wildcard is an error: the document is read, and has no such operation.
    """
    for at, pattern in enumerate(patterns):
        matched = [name for name in names if matches((pattern,), name)]
        if not matched and not is_pattern(pattern):
            hint = did_you_mean(pattern, names, "use the names of its operations")
            raise table.wrong(key, f"names {pattern[:80]!r}, and the document has no such operation; {hint}")
        if not matched:
            yield str(table.wrong(key, f"has {pattern[:80]!r}, which matches no operation of the document"))
        elif key == "effects" and all(matches(patterns[:at], name) for name in matched):
            yield str(
                table.wrong(key, f"has {pattern[:80]!r} after patterns that match the same; put it first")
            )


def _effects(table: Table) -> dict[str, Effect]:
    if "effects" not in table:
        return {}
    given = table.table("effects")
    return {pattern: Effect(given.choice(pattern, Effect) or Effect.WRITE) for pattern in given}


def _spec_of(
    operation: ImportedOperation, name: str, gateway: Gateway, effects: dict[str, Effect]
) -> ToolSpec:
    named = (effect for pattern, effect in effects.items() if matches((pattern,), operation.name))
    effect = next(named, default_effect(operation.method))
    return ToolSpec(
        canonical_name(name),
        operation.description,
        operation.input_schema,
        operation.output_schema,
        effect,
        operation=HttpOperation(
            gateway.name,
            gateway.base_url,
            operation.method,
            operation.path,
            parameters=operation.parameters,
            headers=operation.headers,
            body=operation.body,
            has_body=operation.has_body,
            parts=operation.parts,
            is_idempotent=operation.method in READING_METHODS and effect is Effect.READ,
            request=operation.request,
            response=operation.response,
        ),
        declared_name=name,
        are_schemas_checked=True,
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
