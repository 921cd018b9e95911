"""A tool's arguments from the command line: NAME=VALUE pairs, or one JSON document."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from portbook.cli.completion import tool_candidates
from portbook.errors import Refused
from portbook.escaping import escaped
from portbook.model import JSONObject
from portbook.tools.catalog import Tool
from portbook.wire.parsing import parse

__all__ = ["arguments_of_a_call", "ask_for", "missing_arguments", "read_arguments"]

_F = TypeVar("_F", bound=Callable[..., Any])

_DOCUMENT: Final = "--input"


def read_arguments(tool: Tool | None, pairs: tuple[str, ...], document: str | None) -> JSONObject:
    """Return the arguments: a value is a string where the tool's schema wants one, and JSON otherwise.

    Raises `click.UsageError` for what cannot be read.
    """
    arguments: JSONObject = {}
    _require_one_reader(pairs, document)
    if document is not None:
        arguments = _object(_content(_DOCUMENT, document))
    properties: Any = tool.spec.input_schema.get("properties", {}) if tool else {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        _require_utf8(pair)
        if not equals:
            # `serve`, `tools` and `check` take toolsets here.
            hint = f"; write --toolset {pair} for a toolset" if pair.endswith(".py") else ""
            raise click.UsageError(f"{pair!r}: write arguments as name=value{hint}")
        if name in arguments:
            raise click.UsageError(f"{name!r} is given twice")
        if value == "-" or value.startswith("@"):
            value = _text(name, _content(name, value))
        arguments[name] = value if _wants_text(properties.get(name)) else _json_or_text(name, value)
    return arguments


def _require_one_reader(pairs: tuple[str, ...], document: str | None) -> None:
    """Raise `click.UsageError` where two would read standard input: the second would find nothing there."""
    readers = [name for name, _, value in (pair.partition("=") for pair in pairs) if value == "-"]
    if len(readers) + (document == "-") > 1:
        raise click.UsageError("standard input can be read once; write - once, and @FILE for the rest")


def missing_arguments(tool: Tool, arguments: JSONObject) -> list[str]:
    """Return the required arguments that are not given, in the order of the schema."""
    required = tool.spec.input_schema.get("required", [])
    return [name for name in cast("list[str]", required) if name not in arguments]


def ask_for(tool: Tool, names: list[str]) -> JSONObject:
    """Return what a person at the terminal gives for these arguments, one line each."""
    properties: Any = tool.spec.input_schema.get("properties", {})
    given: JSONObject = {}
    with _interrupted_at_once():
        for name in names:
            schema = properties.get(name)
            question = escaped(_question(name, schema))
            said: str = click.prompt(question, err=True, default="", show_default=False)
            given[name] = said if _wants_text(schema) else _json_or_text(name, said)
    return given


@contextmanager
def _interrupted_at_once() -> Generator[None]:
    """Let Ctrl-C end a question: the event loop, in which it is asked, would wait for the answer first."""
    before = signal.getsignal(signal.SIGINT)
    if before in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _question(name: str, schema: Any) -> str:
    described = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    kind, words = described.get("type"), described.get("description")
    shown = ", ".join(str(each) for each in (kind, words) if isinstance(each, str))
    return f"{name} ({shown})" if shown else name


def _content(name: str, source: str) -> bytes:
    """Return what a value stands for: - standard input, @FILE a file, @@ an @, anything else itself."""
    if source == "-":
        return sys.stdin.buffer.read()
    if not source.startswith("@") or source.startswith("@@"):
        return os.fsencode(source.removeprefix("@"))
    try:
        return Path(source[1:]).read_bytes()
    except OSError as error:
        # A document begins with a brace: only an argument can mean an @ itself.
        hint = "" if name == _DOCUMENT else "; write @@ for a value that begins with @"
        raise click.UsageError(f"{name}: {source[1:]}: {error.strerror}{hint}") from None


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError(f"{name}: not UTF-8; a tool takes binary data as base64") from None


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


def arguments_of_a_call(function: _F) -> _F:
    """Add a tool's name, its arguments as NAME=VALUE, and the option that gives them as one document."""
    for option in (
        click.option(
            "--input",
            "document",
            help="All arguments as one JSON object; - for standard input, @FILE for a file.",
        ),
        click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]..."),
        click.argument("tool", shell_complete=tool_candidates),
    ):
        function = option(function)
    return function
