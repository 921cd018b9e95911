"""Sending an asset to a backend: checked first, one POST, five seconds, nothing tried twice.

Whatever happens is a result as the asset contract has it. A backend's own words are passed on where they
are one short line; anything else it says stays here. Whatever posts it is an argument.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import unquote_to_bytes, urlsplit

from portbook.assets.library import Library
from portbook.assets.names import ASSET
from portbook.assets.validate import check, failed
from portbook.canonical import json_bytes
from portbook.errors import Finding, Refused
from portbook.model import JSON, JSONObject
from portbook.net.destinations import BadDestination, parse_url
from portbook.version import __version__
from portbook.wire.framing import MAX_FRAME_BYTES
from portbook.wire.parsing import parse

__all__ = ["DISABLED", "Backend", "BackendReply", "BadBackend", "Post", "backend_at", "populate"]

# The asset specification's deadline.
_TIMEOUT_S: Final = 5.0

# As long as one line that a person would read.
_MAX_DETAIL: Final = 200

DISABLED: Final[JSONObject] = {"ok": False, "reason": "unsupported", "detail": "backend disabled"}
_TOO_LARGE: Final = Finding("", "payload_too_large", "maxLength", "")
_NO_SCHEMA: Final = Finding("", f"cannot be checked: there is no schema {ASSET}", "schema", "")

# Where a backend's answer names what it made, in the order of preference.
_ID_MEMBERS: Final = ("id", "asset_id", "synesthetic_asset_id")
_WORDS_MEMBERS: Final = ("detail", "message", "error")


class BadBackend(ValueError):
    """An address that no backend can have; the message says why."""


class BackendReply(Protocol):
    """What came back."""

    @property
    def status(self) -> int:
        """Return its HTTP status."""
        ...

    @property
    def body(self) -> bytes:
        """Return its body, whole."""
        ...


class Post(Protocol):
    """Sends a body to an address."""

    def __call__(
        self, url: str, body: bytes, headers: Mapping[str, str], timeout_s: float
    ) -> Awaitable[BackendReply]:
        """Send `body` to `url`, once; return what came back.

        Raises `OSError` where nothing did that is HTTP, or not within `timeout_s`, all steps together.
        """
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """Where assets are sent."""

    shown: str
    """Its address, without any password in it."""
    url: str
    """The address of the POST."""
    post: Post
    headers: dict[str, str] = field(default_factory=dict[str, str])


def backend_at(base: str, path: str, post: Post) -> Backend:
    """Return the backend at `base`, where assets are sent to `path` below it.

    Raises `BadBackend` for what is no HTTP address.
    """
    try:
        parts = urlsplit(base)
        _ = parts.port
    except ValueError:
        raise BadBackend("the backend's address is not a valid one") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadBackend("the backend's address must start with http:// or https:// and name a host")
    userinfo, _, host = parts.netloc.rpartition("@")
    bare = parts._replace(netloc=host, query="", fragment="")
    url = bare._replace(path=f"{bare.path.rstrip('/')}/{path.lstrip('/')}").geturl()
    try:
        parse_url(url)
    except BadDestination as error:
        raise BadBackend(f"the backend's address cannot be used: {error}") from None
    headers = {
        "content-type": "application/json",
        "accept": "application/json",
        "user-agent": f"portbook/{__version__}",
    }
    if userinfo:
        # A byte of the environment's that is not UTF-8 reaches Python as a lone surrogate.
        secret = unquote_to_bytes(userinfo.encode("utf-8", "surrogateescape"))
        headers["authorization"] = "Basic " + base64.b64encode(secret).decode()
    return Backend(bare.geturl(), url, post, headers)


async def populate(library: Library, backend: Backend, asset: JSON, *, validate_first: bool) -> JSONObject:
    """Send `asset`, once it is known to be valid; return the contract's result."""
    body = json_bytes(asset)
    if len(body) > MAX_FRAME_BYTES:
        return failed((_TOO_LARGE,))
    if validate_first and library.schema(ASSET) is None:
        return failed((_NO_SCHEMA,))
    if validate_first and (findings := check(library, asset, ASSET)):
        return failed(findings)
    try:
        reply = await backend.post(backend.url, body, backend.headers, _TIMEOUT_S)
    except OSError:
        return _backend_error(503, "network_unreachable")
    answer = _parsed(reply.body)
    if not 200 <= reply.status < 300:
        return _backend_error(reply.status, _words(answer, reply.body) or _status_words(reply.status))
    if reply.body and not isinstance(answer, dict):
        # Not what a backend says that stored something: a page of a proxy's, most likely.
        return _backend_error(502, "invalid_response")
    return {"ok": True, "asset_id": _asset_id(answer), "backend_url": backend.shown}


def _backend_error(status: int, detail: str) -> JSONObject:
    return {"ok": False, "reason": "backend_error", "status": status, "detail": detail}


def _parsed(body: bytes) -> JSON:
    try:
        return parse(body)
    except Refused:
        return None


def _asset_id(answer: JSON) -> str:
    """Return the name that the backend gave the asset; empty where it did not say."""
    members = answer if isinstance(answer, dict) else {}
    found = (members.get(name) for name in _ID_MEMBERS)
    return next(
        (str(value) for value in found if isinstance(value, str | int) and not isinstance(value, bool)), ""
    )


def _words(answer: JSON, body: bytes) -> str:
    """Return what the backend says of its refusal, where that is one short line of text."""
    said = body.decode("utf-8", "replace").strip() if answer is None else answer
    if isinstance(answer, dict):
        said = next((answer[name] for name in _WORDS_MEMBERS if isinstance(answer.get(name), str)), "")
    is_line = isinstance(said, str) and len(said) <= _MAX_DETAIL and said.isprintable() and "<" not in said
    return str(said) if is_line else ""


def _status_words(status: int) -> str:
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return "internal error"  # the asset specification's words for it
    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return f"status {status}"
