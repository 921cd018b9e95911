"""Sends an asset to a backend: validated first, one POST within five seconds, no retries.

Every outcome is a result of the asset contract. A backend's error message is passed on only where it is one
short line. The function that sends the POST is an argument.
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

# The longest line that is passed on.
_MAX_DETAIL: Final = 200

DISABLED: Final[JSONObject] = {"ok": False, "reason": "unsupported", "detail": "backend disabled"}
_TOO_LARGE: Final = Finding("", "payload_too_large", "maxLength", "")
_NO_SCHEMA: Final = Finding("", f"cannot be checked: there is no schema {ASSET}", "schema", "")

# Members of a backend's answer that hold the id of the new asset, in the order of preference.
_ID_MEMBERS: Final = ("id", "asset_id", "synesthetic_asset_id")
_WORDS_MEMBERS: Final = ("detail", "message", "error")


class BadBackend(ValueError):
    """An invalid address of a backend; the message gives the reason."""


class BackendReply(Protocol):
    """The response of a backend."""

    @property
    def status(self) -> int:
        """Return its HTTP status."""
        ...

    @property
    def body(self) -> bytes:
        """Return its whole body."""
        ...


class Post(Protocol):
    """Sends a body to an address."""

    def __call__(
        self, url: str, body: bytes, headers: Mapping[str, str], timeout_s: float
    ) -> Awaitable[BackendReply]:
        """Send `body` to `url` once; return the response.

        Raises `OSError` where there is no HTTP response within `timeout_s`, for all steps together.
        """
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """The backend that assets are sent to."""

    shown: str
    """Its address, without a password."""
    url: str
    """The address of the POST."""
    post: Post
    headers: dict[str, str] = field(default_factory=dict[str, str])


def backend_at(base: str, path: str, post: Post) -> Backend:
    """Return the backend at `base`; assets are sent to `path` below it.

    Raises `BadBackend` where it is not an HTTP address.
    """
    try:
        parts = urlsplit(base)
        _ = parts.port
    except ValueError:
        raise BadBackend("the backend's address is not a valid URL") from None
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
        # A byte of the environment that is not UTF-8 reaches Python as a lone surrogate.
        secret = unquote_to_bytes(userinfo.encode("utf-8", "surrogateescape"))
        headers["authorization"] = "Basic " + base64.b64encode(secret).decode()
    return Backend(bare.geturl(), url, post, headers)


async def populate(library: Library, backend: Backend, asset: JSON, *, validate_first: bool) -> JSONObject:
    """Validate and send `asset`; return the contract's result."""
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
        # Not the answer of a backend that stored an asset; most likely a proxy's page.
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
    """Return the id that the backend gave the asset; empty where it gave none."""
    members = answer if isinstance(answer, dict) else {}
    found = (members.get(name) for name in _ID_MEMBERS)
    return next(
        (str(value) for value in found if isinstance(value, str | int) and not isinstance(value, bool)), ""
    )


def _words(answer: JSON, body: bytes) -> str:
    """Return the backend's error message, where it is one short line of text; otherwise empty."""
    said = body.decode("utf-8", "replace").strip() if answer is None else answer
    if isinstance(answer, dict):
        said = next((answer[name] for name in _WORDS_MEMBERS if isinstance(answer.get(name), str)), "")
    is_line = isinstance(said, str) and len(said) <= _MAX_DETAIL and said.isprintable() and "<" not in said
    return str(said) if is_line else ""


def _status_words(status: int) -> str:
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return "internal error"  # the wording of the asset specification
    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return f"status {status}"
