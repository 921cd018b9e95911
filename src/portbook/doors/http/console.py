"""`GET /`: the console, one page for operators. Its modules and its style are files of the package.

The page holds no data: its script asks the routes that programs use. Each reply has a nonce, and nothing
runs without it; the modules that a script imports inherit the nonce of that script. The address of a file
names the digest of all of them, so that a browser may keep it and never mixes two versions.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from portbook.doors.http.html_pages import SAFETY_LINES, fill
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.response import Reply, problem
from portbook.doors.http.router import Serve
from portbook.version import __version__

__all__ = ["console"]

_FOLDER: Final = Path(__file__).parent / "pages" / "console"
_PAGE: Final = "console.html"
_TYPES: Final = {
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
}
_KEPT: Final = b"cache-control: public, max-age=31536000, immutable\r\n"


def console(needs_key: Callable[[], bool], has_operator_key: Callable[[], bool]) -> dict[str, Serve]:
    """Return what serves the page and its files, by path."""
    template = (_FOLDER / _PAGE).read_text("utf-8")
    files = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
    digest = _digest(files)

    async def serve_page(_request: InboundRequest) -> Reply:
        nonce = secrets.token_urlsafe(16)
        slots = {
            "nonce": nonce,
            # Relative, so that it also works where an application mounts Portbook below a path of its own.
            "files": f"console/{digest}",
            "version": __version__,
            "calls_need_key": _yes(needs_key()),
            "has_operator_key": _yes(has_operator_key()),
        }
        return Reply(200, _page_lines(nonce), fill(template, slots).encode())

    async def serve_file(request: InboundRequest) -> Reply:
        content = files.get(request.segment)
        if content is None:
            return problem(404, "NOT_FOUND", "The console has no such file. Load the page at / again.")
        kind = _TYPES[Path(request.segment).suffix]
        return Reply(200, b"content-type: %b\r\n" % kind + _KEPT + SAFETY_LINES, content)

    return {"/": serve_page, f"/console/{digest}/{{}}": serve_file}


def _digest(files: dict[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name, content in files.items():
        whole.update(b"%b %d\n%b" % (name.encode(), len(content), content))
    return whole.hexdigest()[:16]


def _page_lines(nonce: str) -> bytes:
    rules = (
        "default-src 'none'",
        f"script-src 'nonce-{nonce}'",
        f"style-src 'nonce-{nonce}'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # A text becomes an element by our own code alone, never by a parser.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
    policy = f"content-security-policy: {'; '.join(rules)}\r\n"
    return (
        b"content-type: text/html; charset=utf-8\r\ncache-control: no-store\r\n"
        + policy.encode()
        + SAFETY_LINES
    )


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"
