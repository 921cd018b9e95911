"""The body of a response as a value: JSON, text or binary data, by its content type. Pure: no I/O."""

from __future__ import annotations

import base64
import codecs
import hashlib
import re
from typing import Final

from portbook.errors import Refused
from portbook.model import JSON
from portbook.tools.content import Embedded, Text, blocks_of
from portbook.tools.images_and_audio import Audio, Image
from portbook.tools.media_types import MediaKind, essence, kind_of
from portbook.wire.parsing import parse

__all__ = ["NotDecoded", "content_of", "json_of_body", "value_of_body"]

_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
# Python's names of the encodings of texts on the web (WHATWG), under whichever alias they come; what else
# Python calls an encoding is no charset.
_CHARSETS: Final = re.compile(
    r"utf-8|ascii|iso8859-\d+|cp125\d|cp866|cp874|cp932|cp949|koi8-[ru]|mac-(?:roman|cyrillic)|tis-620|"
    r"utf-(?:16|32)(?:-[lb]e)?|gbk|gb2312|gb18030|big5|big5hkscs|euc_jp|euc_kr|iso2022_jp|shift_jis"
)
# Names of the web that Python does not know.
_ALIASES: Final = {
    "iso-8859-8-i": "iso8859-8", "windows-31j": "cp932", "windows-874": "cp874", "x-gbk": "gbk",
    "x-mac-cyrillic": "mac-cyrillic", "x-sjis": "shift_jis",
}  # fmt: skip
_MARK: Final = b"\xef\xbb\xbf"


class NotDecoded(Exception):
    """A body that is not what its content type says; the message quotes nothing of it."""


def value_of_body(body: bytes, content_type: str, *, may_be_binary: bool = False) -> JSON:
    """Return a body as JSON, as text, or as an object with its base64, as its `content_type` says.

    Text in an unknown charset is binary data, where a result `may_be_binary`.

    Raises `NotDecoded` where it is not of that type.
    """
    kind = kind_of(content_type)
    if kind is MediaKind.JSON:
        return json_of_body(body)
    if kind in (MediaKind.TEXT, MediaKind.FORM) and not (may_be_binary and _codec_of(content_type) is None):
        return _text(body, content_type)
    return {"content_type": essence(content_type), "base64": base64.b64encode(body).decode("ascii")}


def json_of_body(body: bytes) -> JSON:
    """Return a body as JSON.

    Raises `NotDecoded` where it is not.
    """
    try:
        return parse(body.removeprefix(_MARK))
    except Refused:
        raise NotDecoded("the answer is not strict JSON") from None


def content_of(body: bytes, content_type: str) -> JSON:
    """Return a body as MCP content: an image, audio, text, or a resource with its data.

    Raises `NotDecoded` where it is a text that is not of its type.
    """
    kind, media = kind_of(content_type), essence(content_type)
    is_text = kind in (MediaKind.JSON, MediaKind.TEXT, MediaKind.FORM)
    if is_text and _codec_of(content_type) is not None:
        return [*blocks_of(Text(_text(body, content_type)))]
    if media.startswith("image/"):
        return [*blocks_of(Image(body, media))]
    if media.startswith("audio/"):
        return [*blocks_of(Audio(body, media))]
    return [*blocks_of(Embedded(_name_of(body), body, media))]


def _text(body: bytes, content_type: str) -> str:
    codec = _codec_of(content_type)
    if codec is None:
        raise NotDecoded("the answer is text in a charset that is not supported")
    try:
        return body.decode("utf-8-sig" if codec == "utf-8" else codec)
    except UnicodeDecodeError:
        raise NotDecoded(f"the answer is not text in {codec.upper()}") from None


def _codec_of(content_type: str) -> str | None:
    """Return Python's name of the charset of a text, UTF-8 where it names none; None where it is unknown."""
    found = _CHARSET.search(content_type)
    if found is None:
        return "utf-8"
    try:
        name = codecs.lookup(_ALIASES.get(found[1].lower(), found[1])).name
    except LookupError:
        return None
    return name if _CHARSETS.fullmatch(name) else None


def _name_of(body: bytes) -> str:
    """Return a URI that names exactly this data (RFC 6920)."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode("ascii").rstrip("=")
    return f"ni:///sha-256;{digest}"
