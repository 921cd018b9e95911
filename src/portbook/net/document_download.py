"""Downloads one document over HTTP, through the client that calls APIs: the same checks, and no credentials.

Names are resolved once and their addresses checked. Redirects lead to the same scheme, host and port. Proxies
of the environment are not used.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from portbook.net.destinations import BadDestination, Destination, Destinations, parse_url
from portbook.net.dns_and_dial import NotPermitted, Unreachable, Untrusted
from portbook.net.http_client import MAX_REDIRECTS, REDIRECTS, HttpClient, HttpRequest, target_of_redirect
from portbook.net.http_connection import Broken, Response, TooLarge

__all__ = ["CannotDownload", "download"]

_OK: Final = 200


class CannotDownload(Exception):
    """A download that failed; the message says why, and quotes nothing that was received."""


async def download(
    url: str,
    *,
    accept: str,
    limit: int,
    timeout_s: float,
    networks: tuple[str, ...] = (),
    proxy: Destination | None = None,
    ca_file: Path | None = None,
    client: HttpClient | None = None,
) -> bytes:
    """Return the file at `url`; its host may lie in `networks` and on the public internet.

    Raises `CannotDownload` where it cannot be had, is larger than `limit` bytes, or takes longer than
    `timeout_s` in all.
    """
    client = client or HttpClient()
    try:
        parsed = parse_url(url)
        target = f"{parsed.path or '/'}{'?' + parsed.query if parsed.query else ''}"
        headers = f"Accept: {accept}\r\nAccept-Encoding: identity\r\nUser-Agent: portbook\r\n".encode("ascii")
        request = HttpRequest(parsed.destination, "GET", target, headers, None, True, limit, proxy, ca_file)
        async with asyncio.timeout(timeout_s):
            response = await _followed(client, request, Destinations.of_base_urls([url], networks))
    except BadDestination as error:
        raise CannotDownload(str(error)) from None
    except (NotPermitted, Unreachable, Untrusted, Broken, TooLarge) as error:
        raise CannotDownload(str(error)) from None
    except TimeoutError:
        raise CannotDownload(f"not all of it arrived within {timeout_s:g} s") from None
    finally:
        await client.close()
    if response.status != _OK:
        raise CannotDownload(f"the answer has the status {response.status}")
    return response.body


async def _followed(client: HttpClient, request: HttpRequest, destinations: Destinations) -> Response:
    for _ in range(MAX_REDIRECTS + 1):
        response = await client.send(request, destinations)
        if response.status not in REDIRECTS:
            return response
        target = target_of_redirect(response, request.destination, request.target)
        if target is None:
            raise CannotDownload("it redirects to a different host; name that address, if you trust it")
        request = request._replace(target=target)
    raise CannotDownload("it redirects too often")
