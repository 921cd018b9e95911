"""Bodies of `multipart/form-data` (RFC 7578). Pure: no I/O.

How a field is written, the first rule that applies:

1. A file, or each of a list of files, is a part with a name for the file and a content type.
2. With a content type of JSON, the field is one part of JSON.
3. With a style, it is one part of text for each pair of that style.
4. Otherwise a list is one part for each item, an object is JSON, and everything else is text.

Null is left out, also in a list.

The document's own words come before guesses by value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from portbook.apis.bodies.body_names import BodyNames
from portbook.apis.bodies.file_arguments import file_of
from portbook.apis.parameter_styles import AmbiguousText, as_is, pairs_of, plain_text, present, unsendable
from portbook.canonical import json_bytes
from portbook.model import JSON, JSONObject
from portbook.tools.http_operation import BodyPart, Style
from portbook.tools.media_types import BINARY_TYPE, JSON_TYPE

__all__ = ["MultipartBody"]

# Searched within a few milliseconds.
_PIECE: Final = 1024 * 1024
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
        segment.find(boundary, start, start + _PIECE + len(boundary)) >= 0
        for start in range(0, len(segment), _PIECE)
    )


def _quoted(name: str) -> str:
    """Return a name for a quoted string, with the escapes of HTML forms, which RFC 7578 recommends."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
