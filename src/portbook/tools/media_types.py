"""Media types such as `application/json`: whether one is valid, and what kind of data it is. Pure: no I/O."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import Final

__all__ = [
    "ANY_TYPE",
    "BINARY_TYPE",
    "FORM_TYPE",
    "JSON_TYPE",
    "MULTIPART_TYPE",
    "TEXT_TYPE",
    "MediaKind",
    "essence",
    "is_in_range",
    "is_json",
    "is_media_range",
    "is_media_type",
    "kind_of",
    "plain_type",
]

JSON_TYPE: Final = "application/json"
FORM_TYPE: Final = "application/x-www-form-urlencoded"
MULTIPART_TYPE: Final = "multipart/form-data"
TEXT_TYPE: Final = "text/plain"
BINARY_TYPE: Final = "application/octet-stream"
ANY_TYPE: Final = "*/*"

# APIs name a few types again and again; what a hostile one names is not kept for long.
_MOST_KNOWN: Final = 64

# RFC 6838 4.2, in lower case, without parameters such as a charset.
_MEDIA: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
# Text under other names; a type that ends in +xml or +yaml is text, too.
_TEXTS: Final = frozenset(
    {
        "application/ecmascript", "application/graphql", "application/javascript", "application/json-seq",
        "application/jsonl", "application/jwt", "application/n-quads", "application/n-triples",
        "application/ndjson", "application/sql", "application/toml", "application/x-javascript",
        "application/x-json-stream", "application/x-ndjson", "application/x-yaml", "application/xml",
        "application/xml-dtd", "application/yaml",
    }
)  # fmt: skip


class MediaKind(Enum):
    """What kind of data a media type is."""

    JSON = auto()
    FORM = auto()
    MULTIPART = auto()
    TEXT = auto()
    BINARY = auto()


def is_media_type(text: str) -> bool:
    """Return whether `text` is a media type such as `application/json`."""
    return _MEDIA.fullmatch(text) is not None


def is_media_range(text: str) -> bool:
    """Return whether `text` is a media type, or a range of them such as `image/*`."""
    return text == ANY_TYPE or is_media_type(text.replace("/*", "/x"))


def is_in_range(media: str, wanted: str) -> bool:
    """Return whether a media type is the one `wanted`, or in that range."""
    return media == wanted or wanted == ANY_TYPE or (wanted[-1:] == "*" and media.startswith(wanted[:-1]))


@lru_cache(_MOST_KNOWN)
def essence(media: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return media.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Return whether JSON is data of this type."""
    return kind_of(media) is MediaKind.JSON


@lru_cache(_MOST_KNOWN)
def kind_of(media: str) -> MediaKind:
    """Return the kind of a media type, whether valid or not; any type, `*/*`, counts as JSON."""
    plain = essence(media)
    if plain in (JSON_TYPE, "text/json", ANY_TYPE, "application/*") or plain.endswith("+json"):
        return MediaKind.JSON
    if plain == FORM_TYPE:
        return MediaKind.FORM
    if plain.startswith("multipart/"):
        return MediaKind.MULTIPART
    if plain.startswith("text/") or plain in _TEXTS or plain.endswith(("+xml", "+yaml")):
        return MediaKind.TEXT
    return MediaKind.BINARY


def plain_type(media: str) -> str:
    """Return the content type to send for one of a document, without parameters and wildcards."""
    plain = essence(media)
    if not plain.endswith("/*"):
        return plain
    return {MediaKind.JSON: JSON_TYPE, MediaKind.TEXT: TEXT_TYPE}.get(kind_of(plain), BINARY_TYPE)
