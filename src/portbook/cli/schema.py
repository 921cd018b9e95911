"""`portbook schema`: the official MCP schemas in force, and whether a schema could replace one of them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, cast

import click

from portbook.app.assemble import official_schemas
from portbook.app.official_schema_override import (
    FETCH_S,
    MAX_BYTES,
    BadOverride,
    CannotFetch,
    check_override,
    fetch,
)
from portbook.cli.exit_codes import ExitCode
from portbook.cli.main import CommandGroup
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, print_data, say, stop_with
from portbook.escaping import escaped_lines
from portbook.model import JSON, JSONObject
from portbook.net.destinations import without_secrets
from portbook.protocol.revisions_and_methods import METHODS, Method, method_of
from portbook.schema.official_schemas import (
    NEWEST,
    OVERLAYS,
    REVISIONS,
    BrokenSchema,
    SchemaStore,
    closure,
    key_of,
)
from portbook.schema.violation_wording import escape_pointer
from portbook.text.did_you_mean import did_you_mean

__all__ = ["command"]


@click.group("schema", cls=CommandGroup)
def command() -> None:
    """Show the official MCP schemas in force, or check a replacement."""


@command.command("check")
@click.argument("uri")
@click.option("--revision", default=NEWEST, show_default=True, help="Revision to replace.")
@click.option("--sha256", metavar="DIGEST", help="Expected sha256 of the schema.")
@json_option()
def check(uri: str, *, revision: str, sha256: str | None, is_json: bool) -> None:
    """Tell whether a schema would be accepted as an override; exit with 1 if not.

    URI is a file, or a file:, http: or https: address.
    """
    _require_revision(revision)
    out = claim_stdout()
    origin = without_secrets(uri)
    verdict: dict[str, JSON] = {"accepted": False, "revision": revision, "origin": origin}
    try:
        data = fetch(uri, limit=MAX_BYTES, timeout_s=FETCH_S)
        verdict["sha256"] = hashlib.sha256(data).hexdigest()
        override = check_override(data, revision, sha256, origin=origin)
    except (CannotFetch, BadOverride) as error:
        verdict["reason"] = error.reason
    except BrokenSchema as error:
        raise stop_with(error) from None
    else:
        verdict |= {"accepted": True, "definitions": len(SchemaStore(override).definitions(revision))}
    print_data(verdict, _verdict_in_words(verdict), out, is_json=is_json)
    if not verdict["accepted"]:
        raise click.exceptions.Exit(ExitCode.FAILURE)


def _verdict_in_words(verdict: dict[str, JSON]) -> list[str]:
    if not verdict["accepted"]:
        return [escaped_lines(f"refused: {verdict['origin']}: {verdict['reason']}")]
    return [
        escaped_lines(f"accepted: {verdict['origin']} for revision {verdict['revision']}"),
        f"definitions: {verdict['definitions']}",
        f"sha256: {verdict['sha256']}",
    ]


@command.command("show")
@click.argument("revision")
@click.argument("method", required=False)
@json_option()
@config_option
def show(revision: str, method: str | None, *, is_json: bool, config: Path | None) -> None:
    """Show the schema in force for a revision of MCP, and its origin.

    REVISION is a date such as 2025-11-25. METHOD is a method such as tools/call, or the name of a definition;
    with it the schemas of its request and its result are shown.
    """
    _require_revision(revision)
    out = claim_stdout()
    try:
        store, warnings = official_schemas(settings_from(config))
        for warning in warnings:
            say(f"warning: {warning}")
        if method is None:
            shown = _overview(store, revision)
            print_data(shown, _overview_in_words(shown), out, is_json=is_json)
        else:
            schemas = {
                name: closure(store.document(revision), name) for name in _named(store, revision, method)
            }
            words = [f"origin: {store.origin(revision)}"]
            words += [json.dumps(_alone(schema, name), indent=2) for name, schema in schemas.items()]
            print_data(_about(store, revision) | {"schemas": schemas}, words, out, is_json=is_json)
    except START_ERRORS as error:
        raise stop_with(error) from None


def _about(store: SchemaStore, revision: str) -> dict[str, Any]:
    return {"revision": revision, "origin": store.origin(revision), "sha256": store.sha256(revision)}


def _overview(store: SchemaStore, revision: str) -> dict[str, Any]:
    overlays = () if store.is_overridden(revision) else OVERLAYS.get(revision, ())
    return _about(store, revision) | {
        "definitions": len(store.definitions(revision)),
        "overlays": [escape_pointer(overlay.path) for overlay in overlays],
        "methods": [
            {
                "method": method.name,
                "sender": method.sender.value,
                "request": method.definition,
                "result": method.result,
            }
            for method in _methods(revision)
        ],
    }


def _overview_in_words(shown: dict[str, Any]) -> list[str]:
    lines = [
        escaped_lines(f"{name}: {shown[name]}") for name in ("revision", "origin", "sha256", "definitions")
    ]
    lines += [f"overlay: {pointer}" for pointer in shown["overlays"]]
    width = max(len(row["method"]) for row in shown["methods"])
    for row in shown["methods"]:
        result = f" -> {row['result']}" if row["result"] else ""
        lines.append(f"  {row['method'].ljust(width)}  {row['sender']:6}  {row['request']}{result}")
    return lines


def _methods(revision: str) -> list[Method]:
    return [method for method in METHODS if method_of(method.name, revision) is method]


def _named(store: SchemaStore, revision: str, name: str) -> list[str]:
    """Return the definitions that the name of a method or a definition stands for."""
    if method := method_of(name, revision):
        return [method.definition, *([method.result] if method.result else [])]
    definitions = store.definitions(revision)
    if name in definitions:
        return [name]
    known = [*(method.name for method in _methods(revision)), *sorted(definitions)]
    hint = did_you_mean(name, known, f"`portbook schema show {revision}` lists its methods")
    raise click.UsageError(f"revision {revision} has no method or definition {name!r}; {hint}")


def _alone(schema: JSONObject, name: str) -> JSONObject:
    """Return one definition under its name, without those that it refers to."""
    return {name: cast("JSONObject", schema[key_of(schema)])[name]}


def _require_revision(revision: str) -> None:
    if revision not in REVISIONS:
        hint = did_you_mean(revision, REVISIONS, f"use {', '.join(REVISIONS)}")
        raise click.UsageError(f"there is no revision {revision!r} of MCP; {hint}")
