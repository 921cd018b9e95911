"""Replaces an official schema by the one at `schema_override_uri`: fetches and checks it, or warns."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import SplitResult, unquote, urlsplit

from portbook.canonical import fingerprint
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.net.destinations import without_secrets
from portbook.schema.engine import BadSchema, compile_schema
from portbook.schema.json_schema_drafts import DIALECT, DRAFT_07, dialect_of
from portbook.schema.official_schemas import REVISIONS, Override, SchemaStore, key_of, references_in
from portbook.schema.violation_wording import escape_pointer, shorten
from portbook.settings import Settings
from portbook.wire.parsing import parse

if TYPE_CHECKING:
    from urllib.request import OpenerDirector, Request

__all__ = [
    "FETCH_S",
    "MAX_BYTES",
    "BadOverride",
    "CannotFetch",
    "check_override",
    "fetch",
    "overridden_schemas",
]


def overridden_schemas(settings: Settings, uri: str, embedded: SchemaStore) -> tuple[SchemaStore, list[str]]:
    """Return the official schemas with the one at `uri`, or the `embedded` ones and a warning."""
    origin = without_secrets(uri)
    try:
        data = fetch(uri, limit=MAX_BYTES, timeout_s=FETCH_S)
        override = check_override(
            data, settings.schema_override_revision, settings.schema_override_sha256, origin=origin
        )
    except CannotFetch as error:
        reason = str(error)
    except BadOverride as error:
        reason = f"{origin}: {error}"
    else:
        return SchemaStore(override), []
    place = settings.opening("schema_override_uri")
    return embedded, [f"{place}the schema override is ignored and the embedded schemas are used: {reason}"]


# Validates a schema that replaces the embedded one of a revision.


# Forty times the largest official schema; a larger document is not a schema of MCP.
MAX_BYTES: Final = 8 * 1024 * 1024

# How long its download may take. Nothing is served before: long enough for a slow host, short for a start.
FETCH_S: Final = 10.0

_DIALECTS: Final = (DIALECT, DRAFT_07, DIALECT + "#", DRAFT_07.removesuffix("#"))
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)

# How many findings are shown: enough to recognize the kind of document.
_SHOWN: Final = 3


class BadOverride(ValueError):
    """A schema that cannot replace the embedded one; the message gives the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def check_override(
    document_bytes: bytes, revision: str, sha256: str | None, *, origin: str = "override"
) -> Override:
    """Return the schema in `document_bytes` as the override of `revision`.

    1. The revision exists, and the document is not too large.
    2. Its digest is the expected one; this is checked before parsing.
    3. It is JSON.
    4. It is a schema: of a supported dialect, with definitions.
    5. It has all definitions of the embedded one, because messages are validated by definition name.
    6. It refers only to its own definitions, because each is compiled only with those it refers to.
    7. All of it compiles.

    Raises `BadOverride` with the reason of the first step that fails.
    """
    if revision not in REVISIONS:
        raise BadOverride(f"there is no revision {shorten(revision)}; choose one of {', '.join(REVISIONS)}")
    if len(document_bytes) > MAX_BYTES:
        raise BadOverride(f"it is larger than {MAX_BYTES // 1024 // 1024} MiB")
    _check_digest(document_bytes, sha256)
    try:
        document = parse(document_bytes)
    except Refused as refused:
        raise BadOverride(f"it is not JSON: {refused.findings[0].message}") from None
    checked = _as_schema(document)
    key = key_of(checked)
    definitions = cast("JSONObject", checked[key])
    if missing := sorted(SchemaStore().definitions(revision) - definitions.keys()):
        raise BadOverride(f"it lacks definitions that revision {revision} has: {_listed(missing)}")
    for name, definition in definitions.items():
        if any(not reference.startswith(f"#/{key}/") for reference in references_in(definition)):
            raise BadOverride(
                f"{escape_pointer((key, name))} refers to something outside of {key}; copy it there"
            )
    _compile_whole(checked, key)
    return Override(revision, checked, origin, hashlib.sha256(document_bytes).hexdigest())


def _check_digest(document_bytes: bytes, sha256: str | None) -> None:
    if sha256 is None:
        return
    if not _SHA256.fullmatch(sha256):
        raise BadOverride("the expected sha256 is not 64 hexadecimal digits")
    actual = hashlib.sha256(document_bytes).hexdigest()
    if actual != sha256.lower():
        raise BadOverride(f"its sha256 is {actual}, not the expected one")


def _as_schema(document: JSON) -> JSONObject:
    if not isinstance(document, dict):
        raise BadOverride("it is not a JSON Schema: it must be an object")
    if document.get("$schema", DIALECT) not in _DIALECTS:
        raise BadOverride(f"its $schema must be {DIALECT} or {DRAFT_07}")
    if not isinstance(document.get(key_of(document)), dict):
        raise BadOverride("it is not a JSON Schema of MCP: it has no definitions under $defs or definitions")
    return document


def _compile_whole(document: JSONObject, key: str) -> None:
    definitions = cast("JSONObject", document[key])
    every: list[JSON] = [{"$ref": "#" + escape_pointer((key, name))} for name in definitions]
    whole: JSONObject = {"$schema": dialect_of(document), "anyOf": every, key: definitions}
    try:
        compile_schema(whole, fingerprint(whole), dialect_of(document))
    except BadSchema as error:
        findings = [f"{finding.pointer or '(root)'}: {finding.message}" for finding in error.findings]
        raise BadOverride(f"it does not compile: {_listed(findings)}") from None


def _listed(items: list[str]) -> str:
    shown = ", ".join(items[:_SHOWN])
    return shown if len(items) <= _SHOWN else f"{shown} and {len(items) - _SHOWN} more"


# An override of the official schema, fetched from a file or over HTTP, once, at start.
#
# It is under a size limit, and one deadline for everything.
#
# Refused: devices, pipes and folders; redirects to a different host; every scheme but `file`, `http` and
# `https`. Proxies from the environment are not used. Messages hold no passwords: they show addresses without
# userinfo and query.

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CHUNK: Final = 65_536
_OK: Final = 200


class CannotFetch(Exception):
    """A fetch that failed; the message says from which address, and why."""

    def __init__(self, uri: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{without_secrets(uri)}: {reason}")


def fetch(uri: str, *, limit: int, timeout_s: float) -> bytes:
    """Return what `uri` names: a `file:` or `http(s):` address, or the path of a file.

    Raises `CannotFetch` where it cannot be read, is larger than `limit` bytes, or takes longer than
    `timeout_s` in all.
    """
    deadline = time.monotonic() + timeout_s
    box: SimpleQueue[bytes | Exception] = SimpleQueue()

    def work() -> None:
        try:
            box.put(_read(uri, limit, deadline))
        except Exception as error:  # noqa: BLE001 - passed to the caller, which raises it
            box.put(error)

    # Resolving names and reading headers ignore deadlines: only a thread can be abandoned.
    threading.Thread(target=work, name="portbook-fetch", daemon=True).start()
    try:
        outcome = box.get(timeout=timeout_s)
    except Empty:
        raise _too_slow(uri, timeout_s) from None
    if isinstance(outcome, TimeoutError):
        raise _too_slow(uri, timeout_s) from None
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _too_slow(uri: str, timeout_s: float) -> CannotFetch:
    return CannotFetch(uri, f"not all of it came within {timeout_s:g} s")


def _too_large(uri: str, limit: int) -> CannotFetch:
    return CannotFetch(uri, f"larger than {limit} bytes")


def _read(uri: str, limit: int, deadline: float) -> bytes:
    found = _SCHEME.match(uri)
    scheme = found[1].lower() if found else None
    if scheme is None:
        return _read_file(uri, Path(uri), limit)
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise CannotFetch(uri, "not a valid address") from None
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise CannotFetch(uri, "a file address names no host; write file:///path")
        return _read_file(uri, Path(unquote(parts.path)), limit)
    if scheme in ("http", "https"):
        return _read_http(uri, parts, limit, deadline)
    raise CannotFetch(uri, "only file, http and https addresses can be read; start a path with ./ or /")


# -- files


def _read_file(uri: str, path: Path, limit: int) -> bytes:
    try:
        # Without O_NONBLOCK, opening a pipe without a writer would block.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotFetch(uri, f"cannot be read: {error.strerror}") from None
    except ValueError:  # a path with a null character in it
        raise CannotFetch(uri, "not a valid path") from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise CannotFetch(uri, "not a regular file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise CannotFetch(uri, f"cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)
    if len(data) > limit:
        raise _too_large(uri, limit)
    return data


# -- HTTP


def _read_http(uri: str, parts: SplitResult, limit: int, deadline: float) -> bytes:
    # 60 ms to import, and most servers have nothing to fetch.
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request

    userinfo, _, host = parts.netloc.rpartition("@")
    if not host:
        raise CannotFetch(uri, "not a valid address")
    request = Request(parts._replace(netloc=host, fragment="").geturl())  # noqa: S310 - http or https, as asked
    request.add_header("Accept", "application/schema+json, application/json")
    if userinfo:
        credentials = base64.b64encode(unquote(userinfo).encode()).decode()
        request.add_header("Authorization", f"Basic {credentials}")
    try:
        with _opener().open(request, timeout=_left(deadline)) as response:
            return _read_body(uri, response, limit, deadline)
    except _Elsewhere:
        reason = "redirects to another place; name that address, if you trust it"
    except HTTPError as error:
        error.close()
        reason = f"HTTP status {error.code}"
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise error.reason from None
        reason = f"cannot be reached: {_words(error.reason)}"
    except TimeoutError:
        raise
    except OSError as error:
        reason = f"cannot be reached: {_words(error)}"
    except (HTTPException, ValueError):  # their texts may quote the address
        reason = "the answer is not HTTP, or the address is not a valid one"
    raise CannotFetch(uri, reason)


def _read_body(uri: str, response: Any, limit: int, deadline: float) -> bytes:
    if response.status != _OK:
        raise CannotFetch(uri, f"HTTP status {response.status}")
    announced: int | None = response.length
    if announced is not None and announced > limit:
        raise _too_large(uri, limit)
    data = bytearray()
    while chunk := response.read1(_CHUNK):
        data += chunk
        if len(data) > limit:
            raise _too_large(uri, limit)
        _left(deadline)
    if announced is not None and len(data) < announced:
        raise CannotFetch(uri, "the answer was cut short")
    return bytes(data)


class _Elsewhere(Exception):
    """A redirect to a different site."""


def _opener() -> OpenerDirector:
    """Return an opener for HTTP alone: no proxies, no cookies, no further schemes."""
    from urllib import request

    class Redirects(request.HTTPRedirectHandler):
        """Follow redirects on the same host only."""

        def redirect_request(
            self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
        ) -> Request | None:
            if _site(newurl) != _site(req.full_url):
                raise _Elsewhere
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    opener = request.OpenerDirector()
    for handler in (
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        Redirects(),
    ):
        opener.add_handler(handler)
    return opener


def _site(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _left(deadline: float) -> float:
    """Return the seconds until the deadline.

    Raises `TimeoutError` after it.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _words(error: object) -> str:
    """Return the system's words for an error, without the address."""
    verdict = getattr(error, "verify_message", None)
    if verdict:
        return f"its certificate is not valid: {verdict}"
    return getattr(error, "strerror", None) or type(error).__name__
