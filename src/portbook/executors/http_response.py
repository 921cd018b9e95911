"""Converts an API's response to a tool's result, or to a failure. Pure: no I/O.

A result is a body with a 2xx status and a content type of the operation; JSON is parsed as strictly as a
caller's.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final
from urllib.parse import unquote_plus, urlsplit

from portbook.apis.path_and_query_values import TakenNames
from portbook.errors import Failed, Reason, Refused
from portbook.model import JSON, ApiAnswer, JSONObject
from portbook.net.http_connection import Response, TooLarge
from portbook.tools.content_blocks import Embedded, Text, blocks_of
from portbook.tools.http_operation import HttpOperation
from portbook.tools.images_and_audio import Audio, Image
from portbook.tools.media_types import BINARY_TYPE, MediaKind, essence, is_json, kind_of
from portbook.wire.parsing import parse

__all__ = [
    "NotDecoded",
    "answer_beside",
    "content_of",
    "failure_of_oversize",
    "failure_of_status",
    "json_of_body",
    "links_of",
    "result_of",
    "retry_after_s",
    "upstream_failed",
    "value_of_body",
]

# The body of a response as a value: JSON, text or binary data, by its content type.

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


# The `Link` header of a response (RFC 8288): where further pages are, for the caller to read.
#
# Nothing follows a link. What an API puts into one is not trusted: a URL loses its user and password, its
# fragment, and the parameters that hold the operator's credentials, by any name that a server may read as
# theirs. What is too long, no link, or a URL that browsers read differently, is left out.

# More than any API pages with: first, prev, next, last, and a few of its own.
_MAX_LINKS: Final = 16
_MAX_URL: Final = 2_048
_MAX_REL: Final = 128
_TARGET: Final = re.compile(r"[ \t,]*<([^<>]*)>")
# A parameter: its name, and a token or a quoted string.
_ATTRIBUTE: Final = re.compile(
    r"[ \t]*;[ \t]*([A-Za-z0-9!#$&+.^_`|~*-]+)[ \t]*(?:=[ \t]*(\"(?:[^\"\\]|\\.)*\"|[^\s\",;]*))?"
)
# Without a backslash, which browsers read as a slash: a user and a password may follow it.
_URL: Final = re.compile(r"[!-\[\]-~]+")
# A parameter of a query, after its separator; some servers accept a semicolon.
_PARAMETER: Final = re.compile(r"[&;]?([^&;=]*)[^&;]*")


def links_of(header: str, credential_names: AbstractSet[str] = frozenset()) -> tuple[JSONObject, ...]:
    """Return the links of a header that have a relation, each as an object with `url` and `rel`.

    Parameters of the query that a server may read as one of `credential_names` are taken out.
    """
    taken = TakenNames("", (), credential_names)
    found: list[JSONObject] = []
    for url, rel in _written(header):
        shown = _without_credentials(url, taken)
        if shown is not None and 0 < len(rel) <= _MAX_REL and rel.isascii() and rel.isprintable():
            found.append({"url": shown, "rel": rel})
            if len(found) == _MAX_LINKS:
                break
    return tuple(found)


def _written(header: str) -> Iterator[tuple[str, str]]:
    """Yield URL and relation of each link, up to what is none."""
    place = 0
    while (target := _TARGET.match(header, place)) is not None:
        place, rel = target.end(), None
        while (attribute := _ATTRIBUTE.match(header, place)) is not None:
            place = attribute.end()
            if attribute[1].lower() == "rel" and rel is None:  # RFC 8288, 3.3: only the first counts
                rel = _unquoted(attribute[2] or "")
        yield target[1], rel or ""


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _without_credentials(url: str, taken: TakenNames) -> str | None:
    """Return a URL without credentials, or None where it is none that can be given."""
    if len(url) > _MAX_URL or not _URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in ("", "http", "https"):
        return None
    if not parts.netloc and (parts.scheme or url.startswith("//")):
        return None  # browsers look for the host further on
    kept = [each[0] for each in _PARAMETER.finditer(parts.query) if not taken.is_fixed(unquote_plus(each[1]))]
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="".join(kept).lstrip("&;"), fragment="").geturl() or None


# Why an API's response is no result: a reason by its status.
#
# 1. 401, 403 and 407: the operator's credentials were not accepted; the caller can do nothing about it.
# 2. 404 and 410: nothing is where the arguments point.
# 3. 429 and 5xx: the API failed, and may not fail the next time. So may 408 and 425, but only the caller
# knows.
# 4. Any other 4xx: the API rejected the request, and its JSON says why. That is data for the caller, unless
#    the operator keeps it: never part of a message or a record.
# 5. Everything else: an answer that cannot be used.
#
# Beyond that JSON, nothing that the API sent is passed on.

_DENIED: Final = frozenset({401, 403, 407})
_NOT_FOUND: Final = frozenset({404, 410})
_UNTIMELY: Final = frozenset({408, 425, 429})
_CONFLICTS: Final = frozenset({409, 412})
_TOO_MANY: Final = 429
# As much as explains an error: problem documents (RFC 9457) have a few hundred bytes.
_MAX_BODY_BYTES: Final = 16_384


def upstream_failed(happened: str, status: int | None = None, *, is_retryable: bool = False) -> Failed:
    """Return the failure of a call that the API caused; `happened` quotes nothing that it sent."""
    details = None if status is None else {"upstream_status": status}
    return Failed(Reason.UPSTREAM_ERROR, happened=happened, details=details, is_retryable=is_retryable)


def failure_of_oversize(error: TooLarge, *, gives_body: bool) -> Failed:
    """Return the failure of a call whose response is too large to be read: its status says the rest."""
    if 200 <= error.status < 300:
        return upstream_failed(str(error), error.status)
    failure = failure_of_status(Response(error.status, {}, b""), gives_body=False)
    if failure.reason is Reason.UPSTREAM_REJECTED and gives_body:
        failure.details = {**failure.details, **_left_out("larger than the limit for answers")}
    return failure


def failure_of_status(response: Response, *, gives_body: bool) -> Failed:
    """Return the failure of a call whose response has a status other than 2xx.

    Where the operator `gives_body`, the JSON with which a request was rejected is among its details.
    """
    status = response.status
    happened, details = f"the answer has the status {status}", {"upstream_status": status}
    if status in _DENIED:
        return Failed(Reason.UPSTREAM_DENIED, happened=happened, details=details)
    if status in _NOT_FOUND:
        return Failed(Reason.UPSTREAM_NOT_FOUND, happened=happened, details=details)
    if 400 <= status < 500 and status not in _UNTIMELY:
        if status in _CONFLICTS:
            happened = f"{happened}, a conflict with the present state"
        told = {**details, **_explanation(response)} if gives_body else details
        return Failed(Reason.UPSTREAM_REJECTED, happened=happened, details=told)
    # A server error may be temporary.
    return upstream_failed(happened, status, is_retryable=status >= 500 or status == _TOO_MANY)


def _explanation(response: Response) -> dict[str, object]:
    """Return the JSON of a response as a detail, or why it is left out; nothing where there is none."""
    headers = response.headers
    content_type = headers.get(b"content-type", b"").decode("latin-1")
    is_plain = headers.get(b"content-encoding", b"identity").strip().lower() == b"identity"
    if not response.body:
        return {}
    if len(response.body) > _MAX_BODY_BYTES:
        return _left_out(f"larger than {_MAX_BODY_BYTES} bytes")
    if not is_json(content_type) or not is_plain:
        return _left_out("not plain JSON")
    try:
        return {"upstream_body": parse(response.body)}
    except Refused:
        return _left_out("not strict JSON")


def _left_out(why: str) -> dict[str, object]:
    return {"upstream_body_left_out": why}


_OK: Final = range(200, 300)
_PLAIN: Final = ApiAnswer(200)
# As servers write it; every other way is read, too, in more steps.
_JSON_TYPES: Final = frozenset(
    {
        b"application/json",
        b"application/json; charset=utf-8",
        b"application/json;charset=utf-8",
        b"application/json; charset=UTF-8",
        b"application/json;charset=UTF-8",
    }
)


def result_of(response: Response, operation: HttpOperation, *, gives_error_body: bool = True) -> JSON:
    """Return the result in a 2xx response: JSON, text or content, as the operation has it.

    An operation that reads its responses itself decides alone.

    Raises `Failed` where the status is not 2xx, the content type differs, or the body is compressed or does
    not match its type.
    """
    status, headers, body = response
    if operation.read is not None:
        return operation.read(status, body)
    if status not in _OK:
        raise failure_of_status(response, gives_body=gives_error_body)
    if not body:
        return [] if operation.gives_content else None
    coding, given = headers.get(b"content-encoding"), headers.get(b"content-type", b"")
    if coding is not None and coding.strip().lower() != b"identity":
        raise upstream_failed("the answer is compressed, although identity encoding was requested", status)
    try:
        if given in _JSON_TYPES and operation.takes_json:  # nearly every answer
            return json_of_body(body)
        # RFC 9110, 8.3: data without a type may be any.
        sent = given.decode("latin-1") or BINARY_TYPE
        if not operation.accepts(essence(sent)):
            raise upstream_failed("the content type of the answer is not that of the operation", status)
        if operation.gives_content:
            return content_of(body, sent)
        may_be_binary = not is_json(sent) and operation.accepts(BINARY_TYPE)
        return value_of_body(body, sent, may_be_binary=may_be_binary)
    except NotDecoded as why:
        raise upstream_failed(str(why), status) from None


def answer_beside(response: Response, operation: HttpOperation) -> ApiAnswer:
    """Return what a response says beside its body, without credentials."""
    link = response.headers.get(b"link")
    if link is None:
        return _PLAIN if response.status == _PLAIN.status else ApiAnswer(response.status)
    names = {use.name for use in operation.credentials if use.place == "query"}
    return ApiAnswer(response.status, links_of(link.decode("latin-1"), names))


def retry_after_s(response: Response) -> float | None:
    """Return the server's `Retry-After` in seconds; 0 where there is none, None where it is not a number."""
    asked = response.headers.get(b"retry-after")
    if asked is None:
        return 0.0
    return float(asked) if asked.isdigit() and len(asked) < 10 else None
