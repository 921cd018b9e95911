"""What people see where a program sees 401: a browser that follows an address sends no key with it."""

from __future__ import annotations

import functools
from typing import Final

from portbook.doors.http.accept import wants_page
from portbook.doors.http.page import Page
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.response import Replied, Reply
from portbook.doors.http.router import Serve, finish_reply

__all__ = ["readable_refusals"]

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
