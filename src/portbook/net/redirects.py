"""Where a redirect may be followed to: the same scheme, host and port, and nowhere else. Pure: no I/O."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urljoin

from portbook.net.destinations import BadDestination, Destination, parse_url
from portbook.net.http_connection import Response

__all__ = ["MAX_REDIRECTS", "REDIRECTS", "target_of_redirect"]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# The statuses that name a different address for the same request.
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# The most redirects that are followed for one request.
MAX_REDIRECTS: Final = 5


def target_of_redirect(response: Response, here: Destination, target: str) -> str | None:
    """Return where a redirect of the request for `target` leads; None where that is a different destination.

    A location may be relative to the request (RFC 9110, 10.2.2).
    """
    location = response.headers.get(b"location", b"").decode("latin-1")
    if location and not location.startswith("//") and not _SCHEME.match(location):
        location = urljoin(f"{here.scheme}://{here.authority}{target}", location)
    try:
        url = parse_url(location)
    except BadDestination:
        return None
    if url.destination != here:
        return None
    return f"{url.path or '/'}{'?' + url.query if url.query else ''}"
