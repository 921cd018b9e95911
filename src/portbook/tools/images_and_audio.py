"""Images and audio as content: given as bytes, or read from a file when they are made."""

from __future__ import annotations

import os
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Final

from portbook.model import JSONObject
from portbook.tools.content_block import Content, base64_text

__all__ = ["Audio", "Image"]

# File extensions whose media subtype has a different name.
_SUBTYPES: Final = {"jpg": "jpeg", "svg": "svg+xml", "mp3": "mpeg", "m4a": "mp4"}


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

        Raises `OSError` where it cannot be read, and `TypeError` for both data and path, or neither.
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

        Raises `OSError` where it cannot be read, and `TypeError` for both data and path, or neither.
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
        form = form or Path(path).suffix or None
    if form is not None:
        name = form.lower().lstrip(".")
        object.__setattr__(media, "mime_type", f"{kind}/{_SUBTYPES.get(name, name)}")
