"""Pages: one file each, without external assets, and a CSP that allows only the page's own script."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from portbook.doors.http.accept_header import wants_page
from portbook.doors.http.request import Headers, InboundRequest
from portbook.doors.http.response import Replied, Reply, lines_of
from portbook.doors.http.router import Serve, finish_reply

__all__ = ["SAFETY_LINES", "Page", "fill", "readable_refusals"]

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
