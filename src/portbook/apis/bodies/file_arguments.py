"""Files among a tool's arguments: as base64, or by a path in the operator's folder. Pure: no I/O.

A file by its path has no data here. Whoever reads the folder passes the data on by its path; without it, a
body is only checked, and the file counts as empty.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from portbook.apis.parameter_styles import unsendable
from portbook.model import JSON, JSONObject
from portbook.tools.media_types import essence, is_media_type

__all__ = ["GivenFile", "file_of", "file_schema"]

_BASE64: Final[dict[str, Any]] = {"type": "string", "contentEncoding": "base64"}
# Decoded within a few milliseconds; whole groups of four characters.
_PIECE: Final = 256 * 1024
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
    for start in range(0, len(text), _PIECE):
        piece = text[start : start + _PIECE]
        if piece.endswith("=") and start + _PIECE < len(text):
            raise ValueError("padding before the end")
        yield base64.b64decode(piece, validate=True)
