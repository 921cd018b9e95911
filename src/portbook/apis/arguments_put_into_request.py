"""Composes an operation's request from a tool's arguments: path, query, headers, body. Pure: no I/O.

An argument cannot leave its place. Characters with a meaning in a URL are encoded. A path argument cannot be
empty, nor a dot segment, not even after further decoding. A header argument cannot end its line. No argument
can use the name of a different one. A value that cannot be sent is refused, never silently changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import quote

from portbook.apis.form_and_file_bodies import BodyWriter, NamedFile
from portbook.apis.path_and_query_values import (
    AmbiguousText,
    Encode,
    Pair,
    TakenNames,
    as_is,
    as_reserved_text,
    as_uri_text,
    expanded,
    pairs_of,
    segment_of,
    unsendable,
    without_nulls,
)
from portbook.canonical import json_bytes
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.net.destinations import parse_url
from portbook.text.named_tuple import new_tuple
from portbook.tools.http_methods import BODY_METHODS
from portbook.tools.http_operation import (
    HttpOperation,
    Parameter,
    ParameterPlace,
    Style,
    is_token,
    split_path,
)
from portbook.tools.media_types import JSON_TYPE, MediaKind, kind_of

__all__ = ["Composed", "Composer"]

# Characters of a template that are not encoded; the operator's percent sign starts an escape.
_LITERAL: Final = "/%:@!$&'()*+,;=-._~"
_LITERAL_QUERY: Final = _LITERAL + "?"
# Where callers may choose names, they may choose many.
_MAX_PLAIN_PAIRS: Final = 64
_NO_FILES: Final[Mapping[str, bytes]] = MappingProxyType({})


class Composed(NamedTuple):
    """The parts of a request that depend on the arguments."""

    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    """None where the request has no body, not even an empty one."""
    content_type: str = JSON_TYPE
    """That of the body, where there is one that is not empty."""
    cookies: str = ""
    """The value of the Cookie header, without the operator's cookies."""


class _PlainPair(NamedTuple):
    """A pair of a query whose value is a text."""

    start: str
    """The name, encoded, and what follows it."""
    encode: Encode


class Composer:
    """Composes the requests of one operation."""

    __slots__ = (
        "_fixed_query",
        "_has_no_body",
        "_literals",
        "_members",
        "_names",
        "_placed",
        "_plain_pairs",
        "_taken",
        "_taken_cookies",
        "_writer",
        "operation",
    )

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
        self._plain_pairs: dict[str, _PlainPair] = {}
        """Of arguments that were strings in a query once: where such a one goes depends on no value."""
        self._placed = placed | {parameter.argument: parameter for parameter in self._names}
        self._taken = TakenNames(fixed_query, *_names_in("query", operation))
        self._taken_cookies = TakenNames("", *_names_in("cookie", operation))
        self._members = {item.name for item in operation.parameters if item.place is ParameterPlace.BODY}

        is_json = kind_of(operation.request) is MediaKind.JSON
        self._writer = None if is_json or operation.write is not None else BodyWriter(operation, self._taken)
        self._has_no_body = (
            operation.write is None
            and operation.body is None
            and not operation.sends_body
            and operation.method not in BODY_METHODS
        )
        """Whether no request has a body, whatever its arguments."""

    def refuse(self, arguments: JSONObject) -> Refused | None:
        """Return the refusal of `arguments`, or None where they can be sent."""
        try:
            self.compose(arguments)
        except Refused as refused:
            return refused.with_traceback(None)
        return None

    @property
    def takes_files(self) -> bool:
        """Return whether an argument may name a file by its path."""
        return self._writer is not None

    def files_in(self, arguments: JSONObject) -> list[NamedFile]:
        """Return the files that `arguments` name by their paths; whoever may read them passes them on."""
        return [] if self._writer is None else list(self._writer.files_in(arguments))

    def compose(self, arguments: JSONObject, files: Mapping[str, bytes] = _NO_FILES) -> Composed:
        """Return the request for `arguments`; `files` has the data of those that are named by their paths.

        Raises `Refused` where one of them cannot be sent in its place.
        """
        operation = self.operation
        query = [self._fixed_query] if self._fixed_query else []
        headers = [*operation.headers]
        cookies: list[str] = []
        fields: JSONObject = {}
        for argument, value in arguments.items():
            if type(value) is str and (pair := self._plain_pairs.get(argument)) is not None:
                query.append(f"{pair.start}{pair.encode(value)}")
                continue
            placed = self._placed.get(argument)
            if placed is None:
                if argument != operation.body:
                    self._place(argument, value, query, fields)
            elif placed.place is ParameterPlace.QUERY:
                query.extend(self._query(placed, value))
            elif placed.place is ParameterPlace.HEADER:
                headers.extend(_header(placed, value))
            elif placed.place is ParameterPlace.BODY:
                fields[placed.name] = value
            elif placed.place is ParameterPlace.COOKIE:
                cookies.extend(self._cookies(placed, value))
        path = self._path(arguments) if self._names else self._literals[0]
        target = f"{path}?{'&'.join(query)}" if query else path
        if self._has_no_body:
            return new_tuple(Composed, (target, tuple(headers), None, operation.request, "; ".join(cookies)))
        body, content_type = self._body(arguments, fields, files)
        return Composed(target, tuple(headers), body, content_type, "; ".join(cookies))

    def _place(self, argument: str, value: JSON, query: list[str], fields: JSONObject) -> None:
        """Put an argument without a place of its own into the body, or into the query.

        Raises `Refused` where a different one has its name there.
        """
        if not self.operation.sends_body:
            query.extend(self._query(Parameter(argument, ParameterPlace.QUERY, argument), value))
        elif argument in self._members:
            raise unsendable((argument,), "names a different argument in the body; use that one")
        else:
            fields[argument] = value

    def _query(self, parameter: Parameter, value: JSON) -> Iterator[str]:
        """Yield the query pairs of an argument.

        Raises `Refused` where a pair has a reserved name.
        """
        argument = parameter.argument
        encode = as_reserved_text if parameter.allows_reserved else as_uri_text
        checked = None
        for name, members, text in _pairs(parameter, value, encode):
            if name != checked:  # a list repeats one name
                self._require_own_query_name(name, argument, members)
                checked = name
            yield f"{as_uri_text(name)}={text}"
        is_plain = type(value) is str and parameter.style is not Style.JSON
        if is_plain and len(self._plain_pairs) < _MAX_PLAIN_PAIRS:
            self._plain_pairs[argument] = _PlainPair(f"{as_uri_text(parameter.name)}=", encode)

    def _require_own_query_name(self, name: str, argument: str, members: tuple[str, ...]) -> None:
        """Require that `name` belongs to `argument`, or to these members of it.

        Raises `Refused` where it is reserved.
        """
        if self._taken.is_fixed(name):
            raise unsendable(
                (argument, *members), "is fixed by the operator in this tool's query; leave it out"
            )
        # A parameter's own name is declared; every other name is the caller's choice.
        is_declared = argument in self._placed and not members
        if not is_declared and self._taken.is_of_other_argument(name, argument):
            raise unsendable((argument, *members), "names a different argument in the query; use that one")

    def _body(
        self, arguments: JSONObject, fields: JSONObject, files: Mapping[str, bytes]
    ) -> tuple[bytes | None, str]:
        """Return the body and its content type."""
        operation = self.operation
        if operation.write is not None:
            return operation.write(arguments), operation.request
        whole = operation.body
        if whole is not None:
            if whole not in arguments:
                return b"" if operation.sends_body else None, operation.request
            value, place = arguments[whole], (whole,)
        elif operation.sends_body:
            value, place = fields, ()
        else:
            return b"" if operation.method in BODY_METHODS else None, operation.request
        if self._writer is not None:
            return self._writer.write(value, place, files)
        self._require_not_fixed(value, place)
        return json_bytes(value), operation.request

    def _require_not_fixed(self, body: JSON, place: tuple[str, ...]) -> None:
        """Require that no member of a JSON body overrides the query: many servers read both into one table.

        Raises `Refused` where a member that is not described has a name that is fixed in the query.
        """
        if not isinstance(body, dict):
            return
        described = self.operation.body_members
        for name in body:
            if name not in described and name not in self._members and self._taken.is_fixed(name):
                raise unsendable((*place, name), "is fixed in this tool's query; leave it out")

    def _cookies(self, parameter: Parameter, value: JSON) -> Iterator[str]:
        for name, members, text in _pairs(parameter, value, as_uri_text):
            if members and not is_token(name):
                raise unsendable((parameter.argument, *members), "is not the name of a cookie")
            if self._taken_cookies.is_fixed(name):
                raise unsendable((parameter.argument, *members), "names the operator's cookie; leave it out")
            if members and self._taken_cookies.is_of_other_argument(name, parameter.argument):
                raise unsendable(
                    (parameter.argument, *members), "names a different argument's cookie; use that one"
                )
            yield f"{name}={text}"

    def _path(self, arguments: JSONObject) -> str:
        parts = [self._literals[0]]
        for parameter, literal in zip(self._names, self._literals[1:], strict=True):
            parts += (segment_of(parameter, arguments.get(parameter.argument)), literal)
        path = "".join(parts)
        if "/." in path and not {".", ".."}.isdisjoint(path.split("/")):
            raise unsendable((self._names[0].argument,), "turns a part of the path into a dot segment")
        return path


def _names_in(place: str, operation: HttpOperation) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the parameters of a query or of cookies as names and arguments, and the names of credentials."""
    return (
        [(item.name, item.argument) for item in operation.parameters if item.place == place],
        [use.name for use in operation.credentials if use.place == place],
    )


def _pairs(parameter: Parameter, value: JSON, encode: Encode) -> list[Pair]:
    try:
        return list(pairs_of(parameter.name, value, parameter.style, encode))
    except AmbiguousText as why:
        raise unsendable((parameter.argument,), str(why)) from None


def _header(parameter: Parameter, value: JSON) -> Iterable[tuple[str, str]]:
    if value is None:
        return ()
    # Without a style, an object is JSON, as in a query.
    is_json = parameter.style is Style.REPEAT and isinstance(value, dict)
    style = Style.JSON if is_json else parameter.style
    written = without_nulls(value, style)
    if isinstance(written, list | dict) and not written and style is not Style.JSON:
        return ()
    try:
        text = expanded(parameter.name, written, style, as_is)
    except AmbiguousText as why:
        raise unsendable((parameter.argument,), str(why)) from None
    if not text.isascii() or not text.isprintable():
        raise unsendable(
            (parameter.argument,), "goes into a header: give printable ASCII, without line breaks"
        )
    if text != text.strip(" "):  # RFC 9110, 5.5: no server sees spaces around a value
        raise unsendable((parameter.argument,), "goes into a header: give it without spaces around it")
    return ((parameter.name, text),)
