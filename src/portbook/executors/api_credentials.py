"""`Credentials`: what authenticates Portbook to a gateway, from the operator's secrets only.

`SecretValue` reads one from the environment and from files, `IdentityTokens` has the tokens of this
machine's managed identity.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from portbook.apis.gateway import Gateway, Login, ManagedIdentity, Secret
from portbook.errors import Refused
from portbook.net.destinations import BadDestination, Destinations, ParsedURL, parse_url
from portbook.net.dns_and_dial import NotPermitted, Unreachable, Untrusted
from portbook.net.http_client import HttpClient, HttpRequest
from portbook.net.http_connection import Broken, TooLarge
from portbook.tools.http_operation import CredentialForm, CredentialUse
from portbook.wire.parsing import parse

__all__ = [
    "REMEMBERED",
    "Credentials",
    "IdentityTokens",
    "LoginValue",
    "NoCredential",
    "SecretValue",
    "SentCredentials",
]

# `LoginValue`: the credential for one security scheme, in the form that its scheme sends.


class LoginValue:
    """A login whose secrets are read when they are needed."""

    def __init__(
        self, place: str, login: Login, environ: Mapping[str, str], notice: Callable[[str], None]
    ) -> None:
        """Use `place`, the setting that names it, in messages; `notice` is called with every new secret."""
        self._place = place
        self._notice = notice
        self._secret = None if login.secret is None else SecretValue(place, login.secret, environ, notice)
        self._username = login.username
        self._named = (
            SecretValue(f"{place}.username", login.username, environ, notice)
            if isinstance(login.username, Secret)
            else None
        )
        self.sources = [source for source in (self._named, self._secret) if source is not None]
        """The secrets that it is made of."""
        self._encoded: list[str] = []

    def read(self, form: CredentialForm) -> str:
        """Return the current value in this form.

        Raises `NoCredential` where it is not available, or does not fit the form.
        """
        if form == "basic":
            return f"Basic {self._encode(self._pair())}"
        assert self._secret is not None
        value = self._secret.read()
        return f"Bearer {value}" if form == "bearer" else value

    def known(self) -> list[str]:
        """Return every secret value known so far, for redaction."""
        return [value for source in self.sources for value in source.known()] + self._encoded

    def _pair(self) -> str:
        secret = "" if self._secret is None else self._secret.read()
        if self._username is None:
            if ":" not in secret:
                raise NoCredential(f"{self._place}: must be username:password; or set username and password")
            return secret
        username = self._username if self._named is None else self._named.read()
        assert isinstance(username, str)
        if ":" in username:
            raise NoCredential(f"{self._place}.username: must have no colon in it")
        return f"{username}:{secret}"

    def _encode(self, pair: str) -> str:
        encoded = base64.b64encode(pair.encode()).decode("ascii")
        if encoded not in self._encoded:
            self._encoded = [*self._encoded, encoded][-REMEMBERED:]
            self._notice(encoded)
        return encoded


_COOKIE_VALUE: Final = re.compile(r"[!#-+\--:<-\[\]-~]*")  # RFC 6265 4.1.1


class SentCredentials(NamedTuple):
    """The credentials of one request."""

    lines: str
    """Whole header lines."""
    query: str = ""
    """Pairs for the query, encoded."""
    cookies: str = ""
    """Pairs for the one Cookie header of a request."""


# Of an API that wants none.
_NONE: Final = SentCredentials("")


class Credentials:
    """The credentials of one gateway."""

    def __init__(
        self,
        gateway: Gateway,
        environ: Mapping[str, str],
        client: HttpClient,
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Read the secrets that `gateway` names; `notice` is called with every new secret value."""
        self._place = place = f"http.{gateway.name}"

        def value(key: str, secret: Secret) -> SecretValue:
            return SecretValue(f"{place}.{key}", secret, environ, notice)

        # The prefix of the header line, and the secret for the rest of it.
        self._read: list[tuple[str, SecretValue]] = [
            (f"{name}: ", value(f"headers.{name}", secret))
            for name, secret in gateway.headers
            if isinstance(secret, Secret)
        ]
        if gateway.subscription_key is not None:
            key = value("subscription_key", gateway.subscription_key)
            self._read.append((f"{gateway.subscription_key_header}: ", key))
        if gateway.bearer is not None:
            self._read.append(("Authorization: Bearer ", value("bearer", gateway.bearer)))
        self._logins = {
            scheme: LoginValue(f"{place}.credentials.{scheme}", login, environ, notice)
            for scheme, login in gateway.logins
        }
        self._tokens: IdentityTokens | None = None
        if gateway.managed_identity is not None:
            self._tokens = IdentityTokens(
                f"{place}.managed_identity", gateway.managed_identity, environ, client, notice
            )

    def at_once(self, uses: Sequence[CredentialUse]) -> SentCredentials | None:
        """Return what `read` does, or None where that may have to wait.

        Raises `NoCredential` where one is not available.
        """
        if self._tokens is not None:
            return None
        return self._with_uses(self._lines(), uses) if self._read or uses else _NONE

    async def read(self, uses: Sequence[CredentialUse] = ()) -> SentCredentials:
        """Return the current credentials of a request: those that every request has, and those for `uses`.

        Raises `NoCredential` where one is not available.
        """
        lines = self._lines()
        if self._tokens is not None:
            lines += f"Authorization: Bearer {await self._tokens.read()}\r\n"
        return self._with_uses(lines, uses)

    def _lines(self) -> str:
        return "".join([f"{prefix}{secret.read()}\r\n" for prefix, secret in self._read])

    def _with_uses(self, lines: str, uses: Sequence[CredentialUse]) -> SentCredentials:
        if not uses:
            return SentCredentials(lines) if lines else _NONE
        query: list[str] = []
        cookies: list[str] = []
        for use in uses:
            value = self._logins[use.credential].read(use.form)
            if use.place == "header":
                lines += f"{use.name}: {value}\r\n"
            elif use.place == "query":
                query.append(f"{quote(use.name, safe='')}={quote(value, safe='')}")
            elif _COOKIE_VALUE.fullmatch(value):
                cookies.append(f"{use.name}={value}")
            else:
                raise NoCredential(
                    f"{self._place}.credentials.{use.credential}: a cookie cannot hold this value"
                )
        return SentCredentials(lines, "&".join(query), "; ".join(cookies))

    def secrets(self) -> list[str]:
        """Return every secret value known so far, for redaction."""
        found = [value for _, secret in self._read for value in secret.known()]
        found += [value for login in self._logins.values() for value in login.known()]
        return found + (self._tokens.known() if self._tokens is not None else [])

    def problems(self) -> list[str]:
        """Return what is missing, as far as it can be known without a request; reads all secrets."""
        found: list[str] = []
        sources = [source for login in self._logins.values() for source in login.sources]
        for secret in (*(secret for _, secret in self._read), *sources):
            try:
                secret.read()
            except NoCredential as error:
                found.append(str(error))
        return found


# `IdentityTokens`: tokens of this machine's managed identity, cached and renewed by one request at a time.
#
# They come from the endpoint on this machine that `IDENTITY_ENDPOINT` and `IDENTITY_HEADER` name (App
# Service, Container Apps, Functions), otherwise from the instance metadata service of the virtual machine.
# This module connects to nothing else, whatever the allowlist contains.

_METADATA_SERVICE: Final = "http://169.254.169.254/metadata/identity/oauth2/token"
_MAX_ANSWER_BYTES: Final = 65_536
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
            max_response_bytes=_MAX_ANSWER_BYTES,
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


# Secrets from the environment and from files. A file is read again when it changes, as in a rotation.

# Longer than any key or token that common servers accept in a header.
_MAX_SECRET_BYTES: Final = 16_384
# How many earlier values are kept, so that they are still redacted.
REMEMBERED: Final = 4


class NoCredential(Exception):
    """A credential that is missing or cannot be sent; the message names it, and never quotes it."""


class SecretValue:
    """One secret: its current value and earlier ones."""

    def __init__(
        self, place: str, secret: Secret, environ: Mapping[str, str], notice: Callable[[str], None]
    ) -> None:
        """Use `place`, the setting that names it, in messages; `notice` is called with every new value."""
        self._place = place
        self._secret = secret
        self._environ = environ
        self._notice = notice
        self._stamp: tuple[int, int, int] | None = None
        self._values: list[str] = []

    def read(self) -> str:
        """Return the current value.

        Raises `NoCredential` where there is none, or a header cannot hold it.
        """
        if self._secret.env is not None:
            return self._values[-1] if self._values else self._take(self._environ.get(self._secret.env))
        path = self._secret.file
        assert path is not None
        try:
            stat = path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp == self._stamp:
                return self._values[-1]
            with path.open("rb") as file:
                data = file.read(_MAX_SECRET_BYTES + 1)
        except OSError:
            raise NoCredential(f"{self._place}: its file cannot be read") from None
        value = self._take(data.decode("utf-8", "replace"))
        self._stamp = stamp
        return value

    def known(self) -> list[str]:
        """Return the current and the earlier values, newest last."""
        return list(self._values)

    def _take(self, text: str | None) -> str:
        if text is None:
            raise NoCredential(f"{self._place}: the environment variable {self._secret.env} is not set")
        value = text.strip()
        if not value or len(value) > _MAX_SECRET_BYTES or not (value.isascii() and value.isprintable()):
            raise NoCredential(f"{self._place}: must be one line of printable ASCII, and not empty")
        if value not in self._values:
            self._values = [*self._values, value][-REMEMBERED:]
            self._notice(value)
        return value
