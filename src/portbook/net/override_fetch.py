"""An override of the official schema, fetched from a file or over HTTP, once, at start.

It is under a size limit, and one deadline for everything.

Refused: devices, pipes and folders; redirects to a different host; every scheme but `file`, `http` and
`https`. Proxies from the environment are not used. Messages hold no passwords: they show addresses without
userinfo and query.
"""

from __future__ import annotations

import base64
import os
import re
import stat
import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from portbook.net.destinations import without_secrets

if TYPE_CHECKING:
    from urllib.request import OpenerDirector, Request

__all__ = ["CannotFetch", "fetch"]

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
