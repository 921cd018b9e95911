"""`IdentityTokens`: tokens of this machine's managed identity, cached and renewed by one request at a time.

They come from the endpoint on this machine that `IDENTITY_ENDPOINT` and `IDENTITY_HEADER` name (App Service,
Container Apps, Functions), otherwise from the instance metadata service of the virtual machine. This module
connects to nothing else, whatever the allowlist contains.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from portbook.apis.gateway import ManagedIdentity
from portbook.errors import Refused
from portbook.executors.api_secrets import NoCredential
from portbook.net.destinations import BadDestination, Destinations, ParsedURL, parse_url
from portbook.net.dial import NotPermitted, Unreachable, Untrusted
from portbook.net.http_client import HttpClient, HttpRequest
from portbook.net.http_connection import Broken, TooLarge
from portbook.wire.parsing import parse

__all__ = ["IdentityTokens"]

_METADATA_SERVICE: Final = "http://169.254.169.254/metadata/identity/oauth2/token"
_MAX_BYTES: Final = 65_536
_TIMEOUT_S: Final = 10.0
# A token is renewed this long before it expires, or when a fifth of its lifetime is left if that is shorter.
_MARGIN_S: Final = 300.0
# The pause before the next request for a token, while the old one is still valid.
_PAUSE_S: Final = 10.0
_OK: Final = 200


class _Token(NamedTuple):
    value: str
    renew_at: float
    """In seconds of the monotonic clock."""
    expires_at: float


class IdentityTokens:
    """The tokens of one identity for one resource."""

    def __init__(
        self,
        place: str,
        identity: ManagedIdentity,
        environ: Mapping[str, str],
        client: HttpClient,
        notice: Callable[[str], None],
        *,
        tick: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Use `place`, the setting that names it, in messages; `notice` is called with every new token."""
        self._place = place
        self._identity = identity
        self._environ = environ
        self._client = client
        self._notice = notice
        self._tick = tick
        self._wall = wall
        self._token: _Token | None = None
        self._last: _Token | None = None
        self._asking: asyncio.Task[_Token] | None = None
        self._ask_after = 0.0

    async def read(self) -> str:
        """Return a token that is valid now.

        Raises `NoCredential` where none is available.
        """
        now, token = self._tick(), self._token
        if token is not None and now < token.renew_at:
            return token.value
        if token is not None and now < token.expires_at:
            if now >= self._ask_after:
                self._ask_once()
            return token.value  # still valid: the new token is for later calls
        asking = self._ask_once()
        # Shielded, because other calls may wait for the same token when this one is cancelled.
        return (await asyncio.shield(asking)).value

    def known(self) -> list[str]:
        """Return the current and the previous token, and the secret of the endpoint, for redaction."""
        found = [token.value for token in (self._last, self._token) if token is not None]
        secret = self._environ.get("IDENTITY_HEADER")
        return [*found, secret] if secret else found

    def _ask_once(self) -> asyncio.Task[_Token]:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._renew())
            self._asking.add_done_callback(_retrieve_exception)
        return self._asking

    async def _renew(self) -> _Token:
        self._ask_after = self._tick() + _PAUSE_S
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                value, lifetime_s = await (
                    self._ask_library() if self._identity.uses_library else self._ask()
                )
        except TimeoutError:
            raise NoCredential(f"{self._place}: the identity endpoint did not answer in time") from None
        now = self._tick()
        margin = min(_MARGIN_S, lifetime_s / 5)
        self._last, self._token = self._token, _Token(value, now + lifetime_s - margin, now + lifetime_s)
        self._notice(value)
        return self._token

    async def _ask(self) -> tuple[str, float]:
        """Return a token and its lifetime in seconds, from the endpoint on this machine."""
        endpoint = self._environ.get("IDENTITY_ENDPOINT")
        secret = self._environ.get("IDENTITY_HEADER")
        if endpoint and secret:
            version, header = "2019-08-01", f"X-IDENTITY-HEADER: {secret}"
        else:
            endpoint, version, header = _METADATA_SERVICE, "2018-02-01", "Metadata: true"
        url = _parse_local(endpoint)
        if url is None or not (header.isascii() and header.isprintable()):
            raise NoCredential(f"{self._place}: IDENTITY_ENDPOINT or IDENTITY_HEADER cannot be used")
        asked = {"api-version": version, "resource": self._identity.resource}
        if self._identity.client_id is not None:
            asked["client_id"] = self._identity.client_id
        request = HttpRequest(
            url.destination,
            "GET",
            f"{url.path or '/'}?{urlencode(asked)}",
            f"Accept: application/json\r\n{header}\r\n".encode("ascii"),
            is_idempotent=True,
            max_response_bytes=_MAX_BYTES,
        )
        try:
            response = await self._client.send(request, Destinations.of_base_urls([endpoint]))
        except (NotPermitted, Unreachable, Untrusted, Broken, TooLarge) as error:
            raise NoCredential(f"{self._place}: the identity endpoint: {error}") from None
        if response.status != _OK:
            raise NoCredential(f"{self._place}: the identity endpoint answered {response.status}")
        return self._read_token(response.body)

    def _read_token(self, body: bytes) -> tuple[str, float]:
        try:
            found = parse(body)
        except Refused:
            found = None
        answer: dict[str, Any] = found if isinstance(found, dict) else {}
        value = answer.get("access_token")
        if not isinstance(value, str) or not value or not (value.isascii() and value.isprintable()):
            raise NoCredential(f"{self._place}: the identity endpoint sent no token")
        try:
            # Versions differ: both are strings or numbers, and `expires_in` may be absent.
            lifetime = answer.get("expires_in")
            return value, float(lifetime) if lifetime else float(answer["expires_on"]) - self._wall()
        except (KeyError, ValueError, TypeError):
            raise NoCredential(
                f"{self._place}: the identity endpoint sent a token without an expiry"
            ) from None

    async def _ask_library(self) -> tuple[str, float]:
        """Return a token and its lifetime in seconds, through `azure-identity`."""
        try:
            library = importlib.import_module("azure.identity")  # an optional extra
        except ImportError:
            raise NoCredential(
                f"{self._place}: library = true needs azure-identity to be installed"
            ) from None

        def ask() -> tuple[str, float]:
            credential = library.ManagedIdentityCredential(client_id=self._identity.client_id)
            token = credential.get_token(f"{self._identity.resource.rstrip('/')}/.default")
            return str(token.token), float(token.expires_on) - self._wall()

        try:
            return await asyncio.to_thread(ask)
        except Exception:  # noqa: BLE001 - the library has many exceptions, which quote responses
            raise NoCredential(f"{self._place}: azure-identity got no token") from None


def _parse_local(endpoint: str) -> ParsedURL | None:
    """Return the endpoint's URL, or None where its host is neither localhost nor an IP address."""
    try:
        url = parse_url(endpoint)
    except BadDestination:
        return None
    return url if url.destination.host == "localhost" or url.destination.is_address else None


def _retrieve_exception(task: asyncio.Task[_Token]) -> None:
    if not task.cancelled():
        task.exception()  # retrieved, so that the loop does not log it
