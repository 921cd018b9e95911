"""Media types such as `application/json`: whether one is valid, and what kind of data it is. Pure: no I/O."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["JSON_TYPE", "essence", "is_json", "is_media_type", "plain_type"]

JSON_TYPE: Final = "application/json"
# RFC 6838 4.2, in lower case, without parameters such as a charset.
_MEDIA: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")


def is_media_type(text: str) -> bool:
    """Return whether `text` is a media type such as `application/json`."""
    return _MEDIA.fullmatch(text) is not None


def essence(media: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return media.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Return whether JSON is data of this type."""
    plain = essence(media)
    return plain in (JSON_TYPE, "*/*") or plain.endswith("+json")


def plain_type(media: str) -> str:
    """Return the content type to send; JSON where the document allows any."""
    plain = essence(media)
    return JSON_TYPE if plain == "*/*" else plain
