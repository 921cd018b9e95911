"""`BodyWriter`: writes the bodies of one operation that are not JSON. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from portbook.apis.bodies.body_names import BodyNames
from portbook.apis.bodies.file_arguments import file_of
from portbook.apis.bodies.multipart import MultipartBody
from portbook.apis.bodies.urlencoded import UrlencodedBody
from portbook.apis.parameter_styles import plain_text, unsendable
from portbook.apis.query_names import TakenNames
from portbook.model import JSON, JSONObject
from portbook.tools.http_operation import HttpOperation
from portbook.tools.media_types import MediaKind, kind_of

__all__ = ["BodyWriter", "NamedFile"]


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
