"""Request bodies that are not JSON: forms, text, binary data and files. Pure: no I/O.

`BodyWriter` writes those of one operation.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

from portbook.apis.path_and_query_values import (
    AmbiguousText,
    TakenNames,
    as_form_text,
    as_is,
    as_reserved_text,
    pairs_of,
    plain_text,
    present,
    unsendable,
)
from portbook.canonical import json_bytes
from portbook.model import JSON, JSONObject
from portbook.tools.http_operation import BodyPart, HttpOperation, Style
from portbook.tools.media_types import (
    BINARY_TYPE,
    FORM_TYPE,
    JSON_TYPE,
    MediaKind,
    essence,
    is_media_type,
    kind_of,
)

__all__ = [
    "BodyNames",
    "BodyWriter",
    "GivenFile",
    "MultipartBody",
    "NamedFile",
    "UrlencodedBody",
    "file_of",
    "file_schema",
]


class NamedFile(NamedTuple):
    """A file that an argument names by its path."""

    path: str
    place: tuple[str, ...]
    """Where the path is among the arguments."""


class BodyWriter:
    """Writes forms, text and binary data."""

    __slots__ = ("_binary_fields", "_content_type", "_form", "_is_binary", "_whole")

    def __init__(self, operation: HttpOperation, query: TakenNames) -> None:
        """Write the bodies of `operation`, whose content type is not JSON; `query` has its reserved names."""
        kind, self._content_type = kind_of(operation.request), operation.request
        self._whole = operation.body
        self._is_binary = kind is MediaKind.BINARY
        self._binary_fields = {part.name for part in operation.parts if part.is_binary}
        self._form: UrlencodedBody | MultipartBody | None = None
        if kind is MediaKind.FORM:
            self._form = UrlencodedBody(BodyNames(operation.parts, query))
        elif kind is MediaKind.MULTIPART:
            self._form = MultipartBody(BodyNames(operation.parts, query))

    def write(self, value: JSON, place: tuple[str, ...], files: Mapping[str, bytes]) -> tuple[bytes, str]:
        """Return the body for a value at `place` among the arguments, and its content type.

        Raises `Refused` where the value cannot be sent.
        """
        if self._form is not None:
            if not isinstance(value, dict):
                raise unsendable(place, "is sent as a form; give an object")
            return self._form.write(value, place, files)
        if self._is_binary:
            given = file_of(value, place)
            return given.bytes_from(files), given.content_type or self._content_type
        is_text = self._content_type.startswith("text/")
        return plain_text(value).encode(), self._content_type + ("; charset=utf-8" if is_text else "")

    def files_in(self, arguments: JSONObject) -> Iterator[NamedFile]:
        """Yield the files that `arguments` name by their paths."""
        if self._is_binary and self._whole is not None:
            yield from _named(arguments.get(self._whole), (self._whole,))
            return
        fields, place = arguments, ()
        if self._whole is not None:
            given = arguments.get(self._whole)
            fields, place = (given if isinstance(given, dict) else {}), (self._whole,)
        for field in self._binary_fields & fields.keys():
            yield from _named(fields[field], (*place, field))


def _named(value: JSON, place: tuple[str, ...]) -> Iterator[NamedFile]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _named(item, (*place, str(index)))
    elif isinstance(value, dict) and isinstance(path := value.get("path"), str):
        yield NamedFile(path, (*place, "path"))


# Bodies of `multipart/form-data` (RFC 7578).
#
# How a field is written, the first rule that applies:
#
# 1. A file, or each of a list of files, is a part with a name for the file and a content type.
# 2. With a content type of JSON, the field is one part of JSON.
# 3. With a style, it is one part of text for each pair of that style.
# 4. Otherwise a list is one part for each item, an object is JSON, and everything else is text.
#
# Null is left out, also in a list.
#
# The document's own words come before guesses by value.

# Searched within a few milliseconds.
_SEARCHED_PIECE: Final = 1024 * 1024
_BOUNDARY_PREFIX = "portbook-"
# Some servers take a backslash for the start of an escape, and the escape of a quote for three characters.
_UNREAD: Final = frozenset('"\\')


class _FormPart(NamedTuple):
    """One part of the body."""

    name: str
    data: bytes
    content_type: str | None = None
    """Without one, it is text."""
    filename: str | None = None

    def segments(self) -> tuple[bytes, ...]:
        """Return its headers, its data and the end of its line: not in one, as the data may be large."""
        head = f'Content-Disposition: form-data; name="{_quoted(self.name)}"'
        if self.filename is not None:
            head += f'; filename="{_quoted(self.filename)}"'
        if self.content_type is not None:
            head += f"\r\nContent-Type: {self.content_type}"
        return f"{head}\r\n\r\n".encode(), self.data, b"\r\n"


class MultipartBody:
    """Writes the multipart bodies of one operation."""

    __slots__ = ("_names",)

    def __init__(self, names: BodyNames) -> None:
        self._names = names

    def write(
        self, fields: JSONObject, place: tuple[str, ...], files: Mapping[str, bytes]
    ) -> tuple[bytes, str]:
        """Return the body and its content type; `place` is where the fields are among the arguments.

        Raises `Refused` where a file is not base64, or a field has the name of a different one.
        """
        written = [
            part.segments()
            for field, value in fields.items()
            if value is not None
            for part in self._parts(field, value, (*place, field), files)
        ]
        if not written:
            return b"", ""
        boundary = _boundary_for(written)
        line = b"--%b\r\n" % boundary
        segments = [segment for part in written for segment in (line, *part)]
        body = b"".join([*segments, b"--%b--\r\n" % boundary])
        return body, f"multipart/form-data; boundary={boundary.decode()}"

    def _parts(
        self, field: str, value: JSON, place: tuple[str, ...], files: Mapping[str, bytes]
    ) -> Iterator[_FormPart]:
        part = self._names.part_of(field)
        if part.is_binary:
            yield from _file_parts(part, value, place, files)
        elif part.style is Style.JSON:
            yield _FormPart(field, json_bytes(value), part.content_type or JSON_TYPE)
        elif part.style is not Style.REPEAT:
            try:
                for name, members, text in pairs_of(field, value, part.style, as_is):
                    self._require_own(name, field, (*place, *members), is_whole=not members)
                    yield _FormPart(name, text.encode(), part.content_type)
            except AmbiguousText as why:
                raise unsendable(place, str(why)) from None
        else:
            self._require_own(field, field, place, is_whole=True)
            for item in present(value) if isinstance(value, list) else [value]:
                content_type = part.content_type or (JSON_TYPE if isinstance(item, dict | list) else None)
                yield _FormPart(field, plain_text(item).encode(), content_type)

    def _require_own(self, name: str, field: str, place: tuple[str, ...], *, is_whole: bool) -> None:
        """Require that every server reads `name` as that of `field`.

        Raises `Refused` where it may be read as that of a different argument.
        """
        self._names.require_own(name, field, place, is_whole=is_whole)
        if not (is_whole and self._names.is_described(field)) and not _UNREAD.isdisjoint(name):
            raise unsendable(place, "has a quote or a backslash in its name, which servers read differently")


def _file_parts(
    part: BodyPart, value: JSON, place: tuple[str, ...], files: Mapping[str, bytes]
) -> Iterator[_FormPart]:
    is_list = isinstance(value, list)
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        if item is None:
            continue
        its_place = (*place, str(index)) if is_list else place
        given = file_of(item, its_place)
        if "\\" in (given.name or ""):
            member = "path" if given.filename is None else "filename"
            raise unsendable((*its_place, member), "must have no backslash in the file's name")
        content_type = given.content_type or part.content_type or BINARY_TYPE
        # Without a name for the file, servers take the part for text.
        yield _FormPart(part.name, given.bytes_from(files), content_type, given.name or part.name)


def _boundary_for(parts: list[tuple[bytes, ...]]) -> bytes:
    """Return a boundary that is nowhere in `parts`: a digest of them, the same for the same body.

    It has no line break, so that it cannot lie across two segments.
    """
    segments = [segment for part in parts for segment in part]
    digest = sha256()
    for segment in segments:
        digest.update(segment)
    while True:
        boundary = (_BOUNDARY_PREFIX + digest.hexdigest()[:32]).encode()
        if not any(_is_in(segment, boundary) for segment in segments):
            return boundary
        digest.update(boundary)


def _is_in(segment: bytes, boundary: bytes) -> bool:
    """Return whether a boundary is in a segment; between two pieces, other threads have their turn."""
    return any(
        segment.find(boundary, start, start + _SEARCHED_PIECE + len(boundary)) >= 0
        for start in range(0, len(segment), _SEARCHED_PIECE)
    )


def _quoted(name: str) -> str:
    """Return a name for a quoted string, with the escapes of HTML forms, which RFC 7578 recommends."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


# Bodies of `application/x-www-form-urlencoded`.


class UrlencodedBody:
    """Writes the forms of one operation."""

    __slots__ = ("_names",)

    def __init__(self, names: BodyNames) -> None:
        self._names = names

    def write(
        self, fields: JSONObject, place: tuple[str, ...], files: Mapping[str, bytes]
    ) -> tuple[bytes, str]:
        """Return the body and its content type; `place` is where the fields are among the arguments.

        Raises `Refused` where a field has the name of a different one, or items that cannot be told apart.
        """
        written: list[str] = []
        for field, value in fields.items():
            part = self._names.part_of(field)
            encode = as_reserved_text if part.allows_reserved else as_form_text
            checked = None
            try:
                for name, members, text in pairs_of(field, value, part.style, encode):
                    if name != checked:  # a list repeats one name
                        its_place = (*place, field, *members)
                        self._names.require_own(name, field, its_place, is_whole=not members)
                        checked = name
                    written.append(f"{as_form_text(name)}={text}")
            except AmbiguousText as why:
                raise unsendable((*place, field), str(why)) from None
        return "&".join(written).encode("ascii"), FORM_TYPE


# Files among a tool's arguments: as base64, or by a path in the operator's folder.
#
# A file by its path has no data here. Whoever reads the folder passes the data on by its path; without it,
# a body is only checked, and the file counts as empty.

_BASE64: Final[dict[str, Any]] = {"type": "string", "contentEncoding": "base64"}
# Decoded within a few milliseconds; whole groups of four characters.
_DECODED_PIECE: Final = 256 * 1024
_WORDS: Final = "Its bytes as base64, or an object with"


class GivenFile(NamedTuple):
    """A file as the caller gave it."""

    data: bytes | None
    """None where it is given by its path."""
    path: str | None = None
    filename: str | None = None
    content_type: str | None = None

    def bytes_from(self, files: Mapping[str, bytes]) -> bytes:
        """Return its data; that of a path is among `files`, once the folder has been read."""
        return files.get(self.path or "", b"") if self.data is None else self.data

    @property
    def name(self) -> str | None:
        """Return its name for the server: the given one, or the last part of its path."""
        return self.filename or (None if self.path is None else self.path.rpartition("/")[2])


def file_schema(words: str | None, *, takes_paths: bool, has_name: bool) -> dict[str, Any]:
    """Return the schema of a file; `words` describe it, a file in a form `has_name`."""
    optional: dict[str, Any] = {"content_type": {"type": "string"}}
    if has_name:
        optional["filename"] = {"type": "string", "minLength": 1, "maxLength": 255}
    sources: dict[str, Any] = {"base64": _BASE64}
    if takes_paths:
        sources["path"] = {"type": "string", "description": "In the folder that the operator set."}
    objects = [
        {
            "type": "object",
            "properties": {source: schema, **optional},
            "required": [source],
            "additionalProperties": False,
        }
        for source, schema in sources.items()
    ]
    told = f"{_WORDS} {' or '.join(sources)}, and {', '.join(sorted(optional))} if needed."
    return {"description": f"{words}\n\n{told}" if words else told, "anyOf": [_BASE64, *objects]}


def file_of(value: JSON, place: tuple[str, ...]) -> GivenFile:
    """Return the file that an argument at `place` gives.

    Raises `Refused` where it is no base64, names no media type, or has a member that is not a text.
    """
    if isinstance(value, str):
        return GivenFile(_decoded(value, place))
    if not isinstance(value, dict):
        raise unsendable(place, "is a file; give its bytes as base64")
    path, content_type = _text(value, "path", place), _text(value, "content_type", place)
    filename = _text(value, "filename", place)
    data = None if path is not None else _decoded(_text(value, "base64", place), (*place, "base64"))
    if content_type is None:
        return GivenFile(data, path, filename)
    if not is_media_type(essence(content_type)):
        raise unsendable((*place, "content_type"), "must be a media type, such as image/png")
    return GivenFile(data, path, filename, essence(content_type))


def _text(members: JSONObject, name: str, place: tuple[str, ...]) -> str | None:
    text = members.get(name)
    if text is not None and not isinstance(text, str):
        raise unsendable((*place, name), "must be a text")
    return text


def _decoded(text: str | None, place: tuple[str, ...]) -> bytes:
    try:
        if text is not None:
            return b"".join(_decoded_pieces(text))
    except ValueError:
        pass
    raise unsendable(place, "must be base64 (RFC 4648, 4), with its padding and without spaces")


def _decoded_pieces(text: str) -> Iterator[bytes]:
    """Yield the data of a base64 text; other threads have their turn between two pieces of a large one.

    Raises `ValueError` where it is none.
    """
    for start in range(0, len(text), _DECODED_PIECE):
        piece = text[start : start + _DECODED_PIECE]
        if piece.endswith("=") and start + _DECODED_PIECE < len(text):
            raise ValueError("padding before the end")
        yield base64.b64decode(piece, validate=True)


# The names in a form, each of which belongs to one argument.
#
# A server may read `amount[]` as `amount`. No argument can reach the name of another one that way, nor one
# that is fixed in the query: many servers read both into one table.

_ANY_PART = BodyPart("")
_NOTHING_FIXED = TakenNames("", ())


class BodyNames:
    """The parts of one operation's form, by name."""

    __slots__ = ("_fixed", "_parts", "_taken")

    def __init__(self, parts: Iterable[BodyPart], query: TakenNames = _NOTHING_FIXED) -> None:
        """Compare names with the described `parts`, and with what is fixed in the `query`."""
        self._fixed = query
        self._parts = {part.name: part for part in parts}
        self._taken = TakenNames("", [(name, name) for name in self._parts])

    def part_of(self, field: str) -> BodyPart:
        """Return how a field is written; one that the document does not describe is written by its value."""
        return self._parts.get(field, _ANY_PART)

    def is_described(self, field: str) -> bool:
        """Return whether the document describes a field of this name."""
        return field in self._parts

    def require_own(self, name: str, field: str, place: tuple[str, ...], *, is_whole: bool) -> None:
        """Require that `name` in the form belongs to `field`; a field's whole name is its own if described.

        Raises `Refused` where it may be read as that of a different argument, or as one fixed in the query.
        """
        is_described = self.is_described(field)
        if is_whole and is_described:
            return
        is_inside = is_described and name.startswith(f"{field}[")
        if not is_inside and self._fixed.is_fixed(name):
            raise unsendable(place, "is fixed in this tool's query; leave it out")
        if self._taken.is_of_other_argument(name, field):
            raise unsendable(place, "names a different argument in the body; use that one")
