"""`Credentials`: headers that authenticate Portbook to a gateway, from the operator's secrets only."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from portbook.apis.gateway import Gateway, Secret
from portbook.executors.managed_identity import IdentityTokens
from portbook.executors.secrets import NoCredential, SecretValue
from portbook.net.http_client import HttpClient

__all__ = ["Credentials"]


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
        place = f"http.{gateway.name}"

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
        self._tokens: IdentityTokens | None = None
        if gateway.managed_identity is not None:
            self._tokens = IdentityTokens(
                f"{place}.managed_identity", gateway.managed_identity, environ, client, notice
            )

    async def lines(self) -> str:
        """Return the header lines with the current secrets.

        Raises `NoCredential` where one is not available.
        """
        lines = "".join([f"{prefix}{secret.read()}\r\n" for prefix, secret in self._read])
        if self._tokens is not None:
            lines += f"Authorization: Bearer {await self._tokens.read()}\r\n"
        return lines

    def secrets(self) -> list[str]:
        """Return every secret value known so far, for redaction."""
        found = [value for _, secret in self._read for value in secret.known()]
        return found + (self._tokens.known() if self._tokens is not None else [])

    def problems(self) -> list[str]:
        """Return what is missing, as far as it can be known without a request; reads all secrets."""
        found: list[str] = []
        for _, secret in self._read:
            try:
                secret.read()
            except NoCredential as error:
                found.append(str(error))
        return found
