"""A tool's arguments from the command line: NAME=VALUE pairs, or one JSON document."""

from __future__ import annotations

import os
import sys
from typing import Any, cast

import click

from portbook.errors import Refused
from portbook.model import JSONObject
from portbook.tools.catalog import Tool
from portbook.wire.parsing import parse

__all__ = ["read_arguments"]


def read_arguments(tool: Tool | None, pairs: tuple[str, ...], document: str | None) -> JSONObject:
    """Return the arguments: a value is a string where the tool's schema wants one, and JSON otherwise.

    Raises `click.UsageError` for what cannot be read.
    """
    arguments: JSONObject = {}
    if document is not None:
        arguments = _object(sys.stdin.buffer.read() if document == "-" else os.fsencode(document))
    properties: Any = tool.spec.input_schema.get("properties", {}) if tool else {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        _require_utf8(pair)
        if not equals:
            raise click.UsageError(f"{pair!r}: write arguments as name=value")
        if name in arguments:
            raise click.UsageError(f"{name!r} is given twice")
        arguments[name] = value if _wants_text(properties.get(name)) else _json_or_text(name, value)
    return arguments


def _require_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise click.UsageError("arguments must be UTF-8") from None


def _object(text: bytes) -> JSONObject:
    try:
        value = parse(text)
    except Refused as refused:
        raise click.UsageError(f"--input: {refused.findings[0].message}") from None
    if not isinstance(value, dict):
        raise click.UsageError("--input: must be a JSON object")
    return value


def _wants_text(schema: Any) -> bool:
    return isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "string"


def _json_or_text(name: str, value: str) -> Any:
    try:
        return parse(os.fsencode(value))
    except Refused as refused:
        # What opens like a list or an object is meant as one: as text it would only have the wrong type.
        if value.lstrip().startswith(("{", "[")):
            said = refused.findings[0].message
            hint = f"in a shell, write {name}='...'"
            raise click.UsageError(f"{name}: not JSON: {said}; {hint}") from None
        return value
