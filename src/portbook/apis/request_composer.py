"""Composes an operation's request from a tool's arguments: path, query, headers, body. Pure: no I/O.

An argument cannot leave its place. Characters with a meaning in a URL are encoded. A path argument cannot be
empty, nor a dot segment, not even after further decoding. A header argument cannot end its line. No argument
can use the name of a different one. A value that cannot be sent is refused, never silently changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, cast
from urllib.parse import quote, unquote

from portbook.apis.query_names import TakenNames
from portbook.canonical import json_bytes
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.net.destinations import parse_url
from portbook.schema.messages import escape_pointer
from portbook.tools.operation import BODY_METHODS, HttpOperation, Parameter, ParameterPlace, Style, split_path

__all__ = ["Composed", "Composer"]

# Characters of a template that are not encoded; the operator's percent sign starts an escape.
_LITERAL: Final = "/%:@!$&'()*+,;=-._~"
_LITERAL_QUERY: Final = _LITERAL + "?"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SLASH: Final = re.compile(r"[/\\]")
_SEPARATORS: Final = {Style.COMMA: ",", Style.SPACE: "%20", Style.PIPE: "%7C"}
# How often a path argument is decoded to find a hidden dot segment: nothing on the way to an API decodes more
# often, and each time the text gets shorter.
_DECODINGS: Final = 4


class Composed(NamedTuple):
    """The parts of a request that depend on the arguments."""

    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    """None where the request has no body, not even an empty one."""


class Composer:
    """Composes the requests of one operation."""

    __slots__ = ("_fixed_query", "_literals", "_members", "_names", "_placed", "_taken", "operation")

    def __init__(self, operation: HttpOperation) -> None:
        self.operation = operation
        path, _, fixed_query = operation.path.partition("?")
        self._fixed_query = quote(fixed_query, safe=_LITERAL_QUERY)
        base = parse_url(operation.base_url).path.rstrip("/")
        literals, names = split_path(f"{base}/{path.lstrip('/')}")
        self._literals = [quote(literal, safe=_LITERAL) for literal in literals]
        placed = {parameter.argument: parameter for parameter in operation.parameters}
        in_path = {item.name: item for item in operation.parameters if item.place is ParameterPlace.PATH}
        self._names = [in_path.get(name) or Parameter(name, ParameterPlace.PATH, name) for name in names]
        self._placed = placed | {parameter.argument: parameter for parameter in self._names}
        in_query = [item for item in operation.parameters if item.place is ParameterPlace.QUERY]
        credentials = [use.name for use in operation.credentials if use.place == "query"]
        placed_names = [(item.name, item.argument) for item in in_query]
        self._taken = TakenNames(fixed_query, placed_names, credentials)
        self._members = {item.name for item in operation.parameters if item.place is ParameterPlace.BODY}

    def refuse(self, arguments: JSONObject) -> Refused | None:
        """Return the refusal of `arguments`, or None where they can be sent."""
        try:
            self.compose(arguments)
        except Refused as refused:
            return refused.with_traceback(None)
        return None

    def compose(self, arguments: JSONObject) -> Composed:
        """Return the request for `arguments`.

        Raises `Refused` where one of them cannot be sent in its place.
        """
        operation = self.operation
        query = [self._fixed_query] if self._fixed_query else []
        headers: list[tuple[str, str]] = []
        fields: JSONObject = {}
        for argument, value in arguments.items():
            placed = self._placed.get(argument)
            if placed is None:
                if argument == operation.body:
                    continue
                if not operation.sends_body:
                    query.extend(self._query(Parameter(argument, ParameterPlace.QUERY, argument), value))
                elif argument in self._members:
                    raise _refused((argument,), "names a different argument in the body; use that one")
                else:
                    fields[argument] = value
            elif placed.place is ParameterPlace.QUERY:
                query.extend(self._query(placed, value))
            elif placed.place is ParameterPlace.HEADER:
                headers.extend(_header(placed, value))
            elif placed.place is ParameterPlace.BODY:
                fields[placed.name] = value
        path = self._path(arguments)
        target = f"{path}?{'&'.join(query)}" if query else path
        return Composed(target, tuple(headers), self._body(arguments, fields))

    def _query(self, parameter: Parameter, value: JSON) -> Iterator[str]:
        """Yield the query pairs of an argument.

        Raises `Refused` where a pair has a reserved name.
        """
        argument = parameter.argument
        is_placed = argument in self._placed
        for name, member, texts in _values(parameter.name, value, parameter.style):
            place = (argument,) if member is None else (argument, member)
            if self._taken.is_fixed(name):
                raise _refused(place, "is fixed by the operator in this tool's query; leave it out")
            # A parameter's own name is declared; every other name is the caller's choice.
            if not (is_placed and member is None) and self._taken.is_of_other_argument(name, argument):
                raise _refused(place, "names a different argument in the query; use that one")
            key = quote(name, safe="")
            for text in texts:
                yield f"{key}={text}"

    def _body(self, arguments: JSONObject, fields: JSONObject) -> bytes | None:
        if self.operation.write is not None:
            return self.operation.write(arguments)
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
            raise _refused((self._names[0].argument,), "turns a part of the path into a dot segment")
        return path


def _segment(parameter: Parameter, arguments: JSONObject) -> str:
    """Return a path argument, encoded."""
    value = arguments.get(parameter.argument)
    if value is None or isinstance(value, dict):
        raise _refused((parameter.argument,), "is part of the path; give a string or a number")
    items = [_text(item) for item in value] if isinstance(value, list) else [_text(value)]
    for text in items:
        _require_one_segment(parameter.argument, text)
    if not items:
        raise _refused((parameter.argument,), "is part of the path, and cannot be empty")
    return ",".join(quote(text, safe="") for text in items)


def _require_one_segment(argument: str, text: str) -> None:
    for _ in range(_DECODINGS):
        if not text:
            raise _refused((argument,), "is part of the path, and cannot be empty")
        if _CONTROL.search(text):
            raise _refused((argument,), "is part of the path, and cannot have control characters in it")
        if "." in text and any(part.partition(";")[0] in (".", "..") for part in _SLASH.split(text)):
            raise _refused((argument,), "is part of the path, and cannot be a dot segment or have one in it")
        if "%" not in text or (decoded := unquote(text)) == text:
            return
        text = decoded
    raise _refused((argument,), "is part of the path, and is percent-encoded too often; send it unencoded")


def _values(name: str, value: JSON, style: Style) -> Iterator[tuple[str, str | None, Iterable[str]]]:
    """Yield the query parts of an argument: a name, the member it comes from, its encoded values.

    Null is left out.
    """
    if value is None:
        return
    if style is Style.JSON or (style is Style.REPEAT and isinstance(value, dict)):
        yield name, None, (quote(json_bytes(value), safe=""),)
    elif isinstance(value, list):
        texts = [quote(_text(item), safe="") for item in value]
        separator = _SEPARATORS.get(style)
        yield name, None, (separator.join(texts),) if separator else texts
    elif isinstance(value, dict):
        members = [(member, quote(_text(item), safe="")) for member, item in value.items()]
        if separator := _SEPARATORS.get(style):
            pairs = [part for member, text in members for part in (quote(member, safe=""), text)]
            yield name, None, (separator.join(pairs),)
        elif style is Style.DEEP:
            yield from ((f"{name}[{member}]", member, (text,)) for member, text in members)
        else:
            yield from ((member, member, (text,)) for member, text in members)
    else:
        yield name, None, (quote(_text(value), safe=""),)


def _header(parameter: Parameter, value: JSON) -> Iterable[tuple[str, str]]:
    if value is None:
        return ()
    if parameter.style is Style.JSON or isinstance(value, dict):
        text = json_bytes(value).decode()
    else:
        text = ",".join(map(_text, value)) if isinstance(value, list) else _text(value)
    if not text.isascii() or not text.isprintable():
        raise _refused((parameter.argument,), "goes into a header: give printable ASCII, without line breaks")
    return ((parameter.name, text.strip(" ")),)


def _text(value: JSON) -> str:
    """Return the text of a value in a URL: a string unchanged, all other values as JSON."""
    return value if isinstance(value, str) else json_bytes(cast("object", value)).decode()


def _refused(place: tuple[str, ...], sentence: str) -> Refused:
    return Refused(Reason.BAD_ARGUMENTS, (Finding(escape_pointer(place), sentence, "http", ""),))
