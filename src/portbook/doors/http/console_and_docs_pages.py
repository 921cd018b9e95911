"""HTML pages: `GET /`, the console, and `GET /docs`, on which every route can be tried out."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from portbook.doors.http.request import Headers, InboundRequest, wants_page
from portbook.doors.http.response import Replied, Reply, lines_of, problem
from portbook.doors.http.router import Serve, finish_reply
from portbook.version import __version__

__all__ = ["DOCS", "SAFETY_LINES", "Page", "console", "docs_page", "fill", "readable_refusals"]

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


# `GET /docs`: a page on which every route can be tried out.
#
# It holds no data, so anybody may load it. It reads `/openapi.json`, and with an operator key
# `/operator/openapi.json`, as a program would, and asks for keys that it keeps in memory alone.

DOCS: Final = "/docs"


def docs_page() -> Serve:
    """Return what serves the page."""
    page = Page("docs.html")

    async def serve(_request: InboundRequest) -> Reply:
        return page.filled({"version": __version__})

    return serve


# Pages: one file each, without external assets, and a CSP that allows only the page's own script.

# What a page, its script and its style are sent with. No window of a different site keeps a handle on ours,
# none of it is loaded by a different site, a page loads nothing that does not allow it, and no address of
# ours is told elsewhere.
SAFETY_LINES: Final = lines_of(
    [
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"cross-origin-embedder-policy", b"require-corp"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
    ]
)

_SLOT: Final = re.compile(r"\{\{(\w+)\}\}")
_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)


class Page:
    """A template in the folder `pages`; its `{{slots}}` are filled for each request."""

    def __init__(self, name: str) -> None:
        self._template = (Path(__file__).parent / "pages" / name).read_text("utf-8")
        scripts, styles = _SCRIPT.findall(self._template), _STYLE.findall(self._template)
        headers: Headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", _policy(scripts, styles).encode()),
            (b"cache-control", b"no-store"),
        ]
        self._lines = lines_of(headers) + SAFETY_LINES

    def filled(self, slots: Mapping[str, str], more: bytes = b"") -> Reply:
        """Return the page. The values of `slots` are HTML, escaped by the caller."""
        return Reply(200, self._lines + more, fill(self._template, slots).encode())


def fill(template: str, slots: Mapping[str, str]) -> str:
    """Return a template with its `{{slots}}` filled. Their values are HTML, escaped by the caller."""
    return _SLOT.sub(lambda slot: slots[slot[1]], template)


def _policy(scripts: list[str], styles: list[str]) -> str:
    """Return the Content-Security-Policy: own script and style, and requests to this server alone."""
    rules = ["default-src 'none'", f"style-src {_digests(styles)}"]
    if scripts:
        rules += [f"script-src {_digests(scripts)}", "connect-src 'self'"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])


def _digests(texts: list[str]) -> str:
    if any(_SLOT.search(text) for text in texts):
        raise ValueError("a script or a style has no slots: its digest is in the page's policy")
    return " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts
    )


# What people see where a program sees 401: a browser that follows an address sends no key with it.

_LINES: Final = b"www-authenticate: Bearer\r\nvary: Accept\r\n"


def readable_refusals(serve: Serve) -> Serve:
    """Return what serves the same, but words the refusal of a missing key for people where a browser asks."""

    def served(request: InboundRequest) -> Replied:
        if not wants_page(request.head.fields.get(b"accept")):
            return serve(request)
        return _worded(serve(request), request)

    return served


async def _worded(replied: Replied, request: InboundRequest) -> Reply:
    reply = await finish_reply(replied)
    if reply.status != 401:
        return reply
    # Relative, so that it also works where an application mounts Portbook below a path of its own.
    up = "../" * (request.head.path.count("/") - 1) or "./"
    return _page().filled({"up": up}, _LINES)._replace(status=401)


@functools.cache
def _page() -> Page:
    return Page("key_needed.html")
