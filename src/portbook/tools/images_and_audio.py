"""Images and audio as content: given as bytes, or read from a file when they are made."""

from __future__ import annotations

import os
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Final

from portbook.model import JSONObject
from portbook.tools.content_class import Content, base64_text

__all__ = ["Audio", "Image"]

# File extensions whose media subtype has a different name.
_SUBTYPES: Final = {
    "jpg": "jpeg",
    "svg": "svg+xml",
    "tif": "tiff",
    "ico": "x-icon",
    "mp3": "mpeg",
    "m4a": "mp4",
    "oga": "ogg",
    "aif": "aiff",
}

# The formats that a file's extension may name; any other is given as `format`.
_FORMATS: Final = {
    "image": frozenset({"png", "jpeg", "gif", "webp", "svg+xml", "bmp", "tiff", "avif", "heic", "x-icon"}),
    "audio": frozenset({"wav", "mpeg", "mp4", "ogg", "opus", "flac", "aac", "webm", "aiff"}),
}

# How files of the most frequent formats begin: what has another beginning is no such file.
_BEGINNINGS: Final = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "image/bmp": (b"BM",),
    "image/tiff": (b"II*\x00", b"MM\x00*"),
    "audio/wav": (b"RIFF", b"RF64"),
    "audio/ogg": (b"OggS",),
    "audio/flac": (b"fLaC", b"ID3"),
    "audio/aiff": (b"FORM",),
}


@dataclass(frozen=True, slots=True)
class Image(Content):
    """An image: its raw bytes and their `mime_type`, or the `path` of its file."""

    data: bytes | None = None
    mime_type: str = "image/png"
    format: InitVar[str | None] = None
    """Short form of the media type: `"png"` means `"image/png"`."""
    path: InitVar[str | os.PathLike[str] | None] = None
    """A file to read instead of `data`; its extension is the format, unless that is given."""

    def __post_init__(self, format: str | None, path: str | os.PathLike[str] | None) -> None:  # noqa: A002 - the field's name
        """Read the file where a path is given.

        Raises `OSError` where it cannot be read, `ValueError` where it is no image, and `TypeError` for both
        data and path, or neither.
        """
        _fill(self, "image", format, path)

    def as_json(self) -> JSONObject:
        """Return the MCP form."""
        return {"type": "image", "data": base64_text(self.data or b""), "mimeType": self.mime_type}


@dataclass(frozen=True, slots=True)
class Audio(Content):
    """Audio: its raw bytes and their `mime_type`, or the `path` of its file."""

    data: bytes | None = None
    mime_type: str = "audio/wav"
    format: InitVar[str | None] = None
    """Short form of the media type: `"wav"` means `"audio/wav"`."""
    path: InitVar[str | os.PathLike[str] | None] = None
    """A file to read instead of `data`; its extension is the format, unless that is given."""

    def __post_init__(self, format: str | None, path: str | os.PathLike[str] | None) -> None:  # noqa: A002 - the field's name
        """Read the file where a path is given.

        Raises `OSError` where it cannot be read, `ValueError` where it is no audio, and `TypeError` for both
        data and path, or neither.
        """
        _fill(self, "audio", format, path)

    def as_json(self) -> JSONObject:
        """Return the MCP form."""
        return {"type": "audio", "data": base64_text(self.data or b""), "mimeType": self.mime_type}


def _fill(media: Image | Audio, kind: str, form: str | None, path: str | os.PathLike[str] | None) -> None:
    """Take the data from the file at `path`, and the media type from `form` or the file's name."""
    if (media.data is None) is (path is None):
        raise TypeError(f"{type(media).__name__} takes either data or path")
    if path is not None:
        object.__setattr__(media, "data", Path(path).read_bytes())
        if form is None and (form := Path(path).suffix or None) and _subtype(form) not in _FORMATS[kind]:
            raise ValueError(f"{path}: its extension names no {kind} format; pass format=...")
    if form is not None:
        object.__setattr__(media, "mime_type", f"{kind}/{_subtype(form)}")
    beginnings = _BEGINNINGS.get(media.mime_type, ())
    if path is not None and beginnings and not (media.data or b"").startswith(beginnings):
        raise ValueError(f"{path}: not a file of {media.mime_type}; correct the path, or pass format=...")


def _subtype(form: str) -> str:
    name = form.lower().lstrip(".")
    return _SUBTYPES.get(name, name)
