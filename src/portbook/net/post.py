"""One POST to one address, under one deadline for everything.

No redirects, no proxy, no retries: each request has a connection of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from portbook.net.destinations import Destinations, parse_url
from portbook.net.dial import Unreachable, Untrusted
from portbook.net.http_client import HttpClient, HttpRequest
from portbook.net.http_connection import Broken, Response, TooLarge
from portbook.net.resolve import NotPermitted

__all__ = ["post"]

# The operator alone sets the address: it may lie in a private network.
_ANYWHERE: Final = ("0.0.0.0/0", "::/0")


async def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    timeout_s: float,
    make_client: Callable[[], HttpClient] = HttpClient,
) -> Response:
    """Send `body` to `url` and return the response. One that is too large counts as a 502.

    Raises `OSError` where no HTTP response arrives within `timeout_s`, all steps together; `BadDestination`
    for an invalid `url`.
    """
    destination, path, query = parse_url(url)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    target = f"{path or '/'}?{query}" if query else path or "/"
    request = HttpRequest(destination, "POST", target, lines.encode("latin-1"), body)
    client = make_client()
    try:
        async with asyncio.timeout(timeout_s):
            return await client.send(request, Destinations.of_base_urls([url], _ANYWHERE))
    except TooLarge:
        return Response(502, {}, b"")
    except (NotPermitted, Unreachable, Untrusted, Broken) as error:
        raise ConnectionError(str(error)) from None
    finally:
        await client.close()
