"""From a tool's arguments to the request of its operation: path, query, headers, body. Pure: no I/O.

Whatever an argument holds, it stays in its place: every character that means something in a URL is encoded, a
path argument cannot be empty, a dot segment or something that becomes one when it is decoded again, and a
header argument cannot end its line. What cannot be sent so is refused, never mended in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, cast
from urllib.parse import quote, unquote

from portbook.canonical import json_bytes
from portbook.destinations import parse_url
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.schema.wording import escape_pointer
from portbook.tools.operation import BODY_METHODS, HttpOperation, Parameter, Place, Style, split_path

__all__ = ["Composed", "Composer"]

# What may stand in a template as it is; an operator's percent sign is the start of an escape of their own.
_LITERAL: Final = "/%:@!$&'()*+,;=-._~"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SLASH: Final = re.compile(r"[/\\]")
_SEPARATORS: Final = {Style.COMMA: ",", Style.SPACE: "%20", Style.PIPE: "%7C"}
# How often a path argument is decoded to see whether it hides a dot segment: nothing on the way to an API
# decodes more often, and each time the text gets shorter.
_DECODINGS: Final = 4


class Composed(NamedTuple):
    """The part of a request that the arguments decide."""

    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    """None where the request has none, not even an empty one."""


class Composer:
    """Makes the requests of one operation."""

    __slots__ = ("_literals", "_names", "_placed", "_static_query", "operation")

    def __init__(self, operation: HttpOperation) -> None:
        self.operation = operation
        path, _, self._static_query = operation.path.partition("?")
        base = parse_url(operation.base_url).path.rstrip("/")
        literals, names = split_path(f"{base}/{path.lstrip('/')}")
        self._literals = [quote(literal, safe=_LITERAL) for literal in literals]
        placed = {parameter.argument: parameter for parameter in operation.parameters}
        in_path = {item.name: item for item in operation.parameters if item.place is Place.PATH}
        self._names = [in_path.get(name) or Parameter(name, Place.PATH, name) for name in names]
        self._placed = placed | {parameter.argument: parameter for parameter in self._names}

    def compose(self, arguments: JSONObject) -> Composed:
        """Return the request for `arguments`.

        Raises `Refused` where one of them cannot go where it belongs.
        """
        operation = self.operation
        query = [self._static_query] if self._static_query else []
        headers: list[tuple[str, str]] = []
        fields: JSONObject = {}
        for argument, value in arguments.items():
            placed = self._placed.get(argument)
            if placed is None:
                if argument == operation.body:
                    continue
                if operation.sends_body:
                    fields[argument] = value
                else:
                    query.extend(_query(argument, value, Style.REPEAT))
            elif placed.place is Place.QUERY:
                query.extend(_query(placed.name, value, placed.style))
            elif placed.place is Place.HEADER:
                headers.extend(_header(placed, value))
            elif placed.place is Place.BODY:
                fields[placed.name] = value
        path = self._path(arguments)
        target = f"{path}?{'&'.join(query)}" if query else path
        return Composed(target, tuple(headers), self._body(arguments, fields))

    def _body(self, arguments: JSONObject, fields: JSONObject) -> bytes | None:
        whole = self.operation.body
        if whole is not None:
            if whole in arguments:
                return json_bytes(arguments[whole])
            return b"" if self.operation.sends_body else None
        if self.operation.sends_body:
            return json_bytes(fields)
        return b"" if self.operation.method in BODY_METHODS else None

    def _path(self, arguments: JSONObject) -> str:
        if not self._names:
            return self._literals[0]
        parts = [self._literals[0]]
        for parameter, literal in zip(self._names, self._literals[1:], strict=True):
            parts += (_segment(parameter, arguments), literal)
        path = "".join(parts)
        if "/." in path and not {".", ".."}.isdisjoint(path.split("/")):
            raise _refused(self._names[0].argument, "makes a dot segment of the path")
        return path


def _segment(parameter: Parameter, arguments: JSONObject) -> str:
    """Return a path argument, encoded."""
    value = arguments.get(parameter.argument)
    if value is None or isinstance(value, dict):
        raise _refused(parameter.argument, "is part of the path; give a string or a number")
    items = [_text(item) for item in value] if isinstance(value, list) else [_text(value)]
    for text in items:
        _require_one_segment(parameter.argument, text)
    if not items:
        raise _refused(parameter.argument, "is part of the path, and cannot be empty")
    return ",".join(quote(text, safe="") for text in items)


def _require_one_segment(argument: str, text: str) -> None:
    for _ in range(_DECODINGS):
        if not text:
            raise _refused(argument, "is part of the path, and cannot be empty")
        if _CONTROL.search(text):
            raise _refused(argument, "is part of the path, and cannot have control characters in it")
        if "." in text and any(part.partition(";")[0] in (".", "..") for part in _SLASH.split(text)):
            raise _refused(argument, "is part of the path, and cannot be a dot segment or have one in it")
        if "%" not in text or (decoded := unquote(text)) == text:
            return
        text = decoded
    raise _refused(argument, "is part of the path, and is percent-encoded too often; write it as it is")


def _query(name: str, value: JSON, style: Style) -> Iterator[str]:
    """Yield the pairs that an argument becomes; null is left out."""
    if value is None:
        return
    key = quote(name, safe="")
    if style is Style.JSON or (style is Style.REPEAT and isinstance(value, dict)):
        yield f"{key}={quote(json_bytes(value), safe='')}"
    elif isinstance(value, list):
        if separator := _SEPARATORS.get(style):
            yield f"{key}={separator.join(quote(_text(item), safe='') for item in value)}"
        else:
            yield from (f"{key}={quote(_text(item), safe='')}" for item in value)
    elif isinstance(value, dict):
        members = [(quote(member, safe=""), quote(_text(item), safe="")) for member, item in value.items()]
        if separator := _SEPARATORS.get(style):
            yield f"{key}={separator.join(part for pair in members for part in pair)}"
        elif style is Style.DEEP:
            yield from (f"{key}%5B{member}%5D={text}" for member, text in members)
        else:
            yield from (f"{member}={text}" for member, text in members)
    else:
        yield f"{key}={quote(_text(value), safe='')}"


def _header(parameter: Parameter, value: JSON) -> Iterable[tuple[str, str]]:
    if value is None:
        return ()
    if parameter.style is Style.JSON or isinstance(value, dict):
        text = json_bytes(value).decode()
    else:
        text = ",".join(map(_text, value)) if isinstance(value, list) else _text(value)
    if not text.isascii() or not text.isprintable():
        raise _refused(parameter.argument, "goes into a header: give printable ASCII, without line breaks")
    return ((parameter.name, text.strip(" ")),)


def _text(value: JSON) -> str:
    """Return a value as it stands in a URL: a string as it is, everything else as JSON."""
    return value if isinstance(value, str) else json_bytes(cast("object", value)).decode()


def _refused(argument: str, sentence: str) -> Refused:
    return Refused(Reason.BAD_ARGUMENTS, (Finding(escape_pointer((argument,)), sentence, "http", ""),))
