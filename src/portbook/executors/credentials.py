"""`Credentials`: what authenticates Portbook to a gateway, from the operator's secrets only."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from portbook.apis.gateway import Gateway, Login, Secret
from portbook.executors.managed_identity import IdentityTokens
from portbook.executors.secrets import REMEMBERED, NoCredential, SecretValue
from portbook.net.http_client import HttpClient
from portbook.tools.http_operation import CredentialForm, CredentialUse

__all__ = ["Credentials", "LoginValue", "SentCredentials"]

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
