"""`GET /docs`: a page on which every route can be tried out.

It holds no data, so anybody may load it. It reads `/openapi.json`, and with an operator key
`/operator/openapi.json`, as a program would, and asks for keys that it keeps in memory alone.
"""

from __future__ import annotations

from typing import Final

from portbook.doors.http.html_pages import Page
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.response import Reply
from portbook.doors.http.router import Serve
from portbook.version import __version__

__all__ = ["DOCS", "docs_page"]

DOCS: Final = "/docs"


def docs_page() -> Serve:
    """Return what serves the page."""
    page = Page("docs.html")

    async def serve(_request: InboundRequest) -> Reply:
        return page.filled({"version": __version__})

    return serve
