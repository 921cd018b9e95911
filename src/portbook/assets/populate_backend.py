"""Sends an asset to a backend: validated first, one POST within five seconds, no retries.

The request goes the way of every HTTP tool: here is only what an asset becomes in it, and what the backend's
answer means. A backend's error message is passed on only where it is one short line. Pure: no I/O.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

from portbook.assets.library import Library
from portbook.assets.schema_files import ASSET
from portbook.assets.validate_asset import bounded, check
from portbook.canonical import json_bytes
from portbook.errors import Failed, Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.tools.http_operation import HttpOperation, problem_of_base_url, problem_of_path
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES
from portbook.wire.parsing import parse

__all__ = ["GATEWAY", "Backend", "BadBackend", "backend_at", "populating"]

# The name of the backend's gateway: the setting of its address.
GATEWAY: Final = "assets.backend_url"

# The asset specification's deadline.
_ANSWER_MS: Final = 5_000

# The longest line that is passed on.
_MAX_DETAIL: Final = 200

_OK: Final = range(200, 300)
_TOO_LARGE: Final = Finding("", "payload_too_large", "maxLength", "")
_NO_SCHEMA: Final = Finding("", f"cannot be checked: there is no schema {ASSET}", "schema", "")

# Members of a backend's answer that hold the id of the new asset, in the order of preference.
_ID_MEMBERS: Final = ("id", "asset_id", "synesthetic_asset_id")
_WORDS_MEMBERS: Final = ("detail", "message", "error")


class BadBackend(ValueError):
    """An invalid address of a backend; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Backend:
    """The backend that assets are sent to."""

    base_url: str
    """Its address, without a password."""
    path: str
    """The path of the POST below that address."""
    authorization: str | None = None
    """The header with the user name and the password of the address."""
    secrets: tuple[str, ...] = ()
    """The password, and the header that holds it."""


def backend_at(base: str, path: str) -> Backend:
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
    address = parts._replace(netloc=host, query="", fragment="").geturl()
    # Braces would be the names of arguments.
    path = "/" + path.lstrip("/").replace("{", quote("{")).replace("}", quote("}"))
    if problem := problem_of_base_url(address):
        raise BadBackend(f"the backend's address cannot be used: {problem}")
    if problem := problem_of_path(path):
        raise BadBackend(f"the path below the backend's address {problem}")
    if not userinfo:
        return Backend(address, path)
    # A byte of the environment that is not UTF-8 reaches Python as a lone surrogate.
    secret = unquote_to_bytes(userinfo.encode("utf-8", "surrogateescape"))
    encoded = base64.b64encode(secret).decode()
    password = secret.partition(b":")[2].decode("utf-8", "replace")
    return Backend(address, path, f"Basic {encoded}", tuple(filter(None, (encoded, password))))


def populating(library: Library, backend: Backend) -> HttpOperation:
    """Return the one request that sends an asset."""

    def write(arguments: JSONObject) -> bytes:
        is_checked = arguments.get("validate_first") is not False
        return _body(library, arguments["asset"], is_checked=is_checked)

    return HttpOperation(
        GATEWAY,
        backend.base_url,
        "POST",
        backend.path,
        body="asset",
        is_listed=True,
        answer_ms=_ANSWER_MS,
        write=write,
        read=lambda status, body: _result(status, body, backend.base_url),
    )


def _body(library: Library, asset: JSON, *, is_checked: bool) -> bytes:
    """Return the body that sends `asset`.

    Raises `Refused` where it is too large or, if it `is_checked`, not valid.
    """
    body = json_bytes(asset)
    if len(body) > MAX_FRAME_BYTES:
        raise Refused(Reason.BAD_ASSET, (_TOO_LARGE,))
    if is_checked and library.schema(ASSET) is None:
        raise Refused(Reason.BAD_ASSET, (_NO_SCHEMA,))
    if is_checked and (findings := check(library, asset, ASSET)):
        raise Refused(Reason.BAD_ASSET, bounded(findings))
    return body


def _result(status: int, body: bytes, backend_url: str) -> JSONObject:
    """Return the contract's result.

    Raises `Failed` where the backend refused the asset, and where it does not name the stored one: most
    likely it is a proxy's page then.
    """
    answer = _parsed(body)
    if status not in _OK:
        words = _words(answer, body) or _status_words(status)
        raise _failed(f"the answer has the status {status}", status, words)
    asset_id = _asset_id(answer)
    if asset_id is None:
        raise _failed("the answer does not name the id of the asset", status)
    return {"ok": True, "asset_id": asset_id, "backend_url": backend_url}


def _failed(happened: str, status: int, words: str | None = None) -> Failed:
    details = {"upstream_status": status} | ({} if words is None else {"detail": words})
    is_retryable = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS
    return Failed(Reason.UPSTREAM_ERROR, happened=happened, details=details, is_retryable=is_retryable)


def _parsed(body: bytes) -> JSON:
    try:
        return parse(body)
    except Refused:
        return None


def _asset_id(answer: JSON) -> str | None:
    """Return the id that the backend gave the asset; None where it gave none."""
    members = answer if isinstance(answer, dict) else {}
    found = (members.get(name) for name in _ID_MEMBERS)
    ids = (str(value) for value in found if isinstance(value, str | int) and not isinstance(value, bool))
    return next((each for each in ids if not _is_blank(each)), None)


def _is_blank(text: str) -> bool:
    """Return whether nobody could see the text: an id that is only there by name."""
    return all(character.isspace() or not character.isprintable() for character in text)


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
