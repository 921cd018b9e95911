"""Where a redirect may be followed to: the same scheme, host and port, and nowhere else. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.net.destinations import BadDestination, Destination, parse_url
from portbook.net.http_connection import Response

__all__ = ["MAX_REDIRECTS", "REDIRECTS", "target_of_redirect"]

# The statuses that name a different address for the same request.
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# The most redirects that are followed for one request.
MAX_REDIRECTS: Final = 5


def target_of_redirect(response: Response, here: Destination) -> str | None:
    """Return the target of a redirect, or None where it leads to a different destination."""
    location = response.headers.get(b"location", b"").decode("latin-1")
    if location.startswith("/") and not location.startswith("//"):
        location = f"{here.scheme}://{here.authority}{location}"
    try:
        url = parse_url(location)
    except BadDestination:
        return None
    if url.destination != here:
        return None
    return f"{url.path or '/'}{'?' + url.query if url.query else ''}"
