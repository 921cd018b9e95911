"""The body of a response as a value: JSON, text or binary data, by its content type. Pure: no I/O."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Final

from portbook.errors import Refused
from portbook.model import JSON
from portbook.tools.content import Audio, Embedded, Image, Text, blocks_of
from portbook.tools.media_types import MediaKind, essence, kind_of
from portbook.wire.parsing import parse

__all__ = ["NotDecoded", "content_of", "value_of_body"]

_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
# The encodings of texts on the web (WHATWG); what else Python calls an encoding is no charset.
_CHARSETS: Final = re.compile(
    r"utf-?8|us-ascii|ascii|iso-8859-(?:[1-9]|1[03-6])|latin1|windows-125[0-8]|koi8-[ru]|macintosh|"
    r"utf-16(?:le|be)?|gbk|gb2312|gb18030|big5|euc-jp|euc-kr|iso-2022-jp|shift_jis",
    re.IGNORECASE,
)
_MARK: Final = b"\xef\xbb\xbf"


class NotDecoded(Exception):
    """A body that is not what its content type says; the message quotes nothing of it."""


def value_of_body(body: bytes, content_type: str) -> JSON:
    """Return a body as JSON, as text, or as an object with its base64, as its `content_type` says.

    Raises `NotDecoded` where it is not of that type.
    """
    kind = kind_of(content_type)
    if kind is MediaKind.JSON:
        try:
            return parse(body.removeprefix(_MARK))
        except Refused:
            raise NotDecoded("the answer is not strict JSON") from None
    if kind in (MediaKind.TEXT, MediaKind.FORM):
        return _text(body, content_type)
    return {"content_type": essence(content_type), "base64": base64.b64encode(body).decode("ascii")}


def content_of(body: bytes, content_type: str) -> JSON:
    """Return a body as MCP content: an image, audio, text, or a resource with its data.

    Raises `NotDecoded` where it is a text that is not of its type.
    """
    kind, media = kind_of(content_type), essence(content_type)
    if kind in (MediaKind.JSON, MediaKind.TEXT, MediaKind.FORM):
        return [*blocks_of(Text(_text(body, content_type)))]
    if media.startswith("image/"):
        return [*blocks_of(Image(body, media))]
    if media.startswith("audio/"):
        return [*blocks_of(Audio(body, media))]
    return [*blocks_of(Embedded(_name_of(body), body, media))]


def _text(body: bytes, content_type: str) -> str:
    found = _CHARSET.search(content_type)
    charset = found[1] if found else "utf-8"
    if not _CHARSETS.fullmatch(charset):
        raise NotDecoded("the answer is text in a charset that is not supported")
    try:
        return body.decode("utf-8-sig" if charset.lower() in ("utf-8", "utf8") else charset)
    except (UnicodeDecodeError, LookupError):
        raise NotDecoded(f"the answer is not text in {charset.upper()}") from None


def _name_of(body: bytes) -> str:
    """Return a URI that names exactly this data (RFC 6920)."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode("ascii").rstrip("=")
    return f"ni:///sha-256;{digest}"
