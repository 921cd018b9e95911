"""`Gateway`: an API gateway as declared, with its URL, credentials and limits. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["SUBSCRIPTION_HEADER", "Gateway", "Login", "ManagedIdentity", "Secret"]

# The name that Azure API Management uses.
SUBSCRIPTION_HEADER: Final = "Ocp-Apim-Subscription-Key"

# Larger than most documents and pictures; a request is held in memory until it is answered.
_MAX_FILE_BYTES: Final = 16_777_216
# The size limit of a message at the doors: a larger response could not be passed on.
_MAX_RESPONSE_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Secret:
    """The source of a secret. It is read when needed, and never written."""

    env: str | None = None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """The credential for one security scheme of an OpenAPI document."""

    secret: Secret | None
    """The key, the token or the password; None where a user's name is all there is."""
    username: str | Secret | None = None
    """Only for HTTP Basic; without it, the secret is `username:password`."""


@dataclass(frozen=True, slots=True)
class ManagedIdentity:
    """The platform's identity of this machine, and the resource that its tokens are for."""

    resource: str
    client_id: str | None = None
    """Which identity, where the machine has several."""
    uses_library: bool = False
    """Whether the optional library `azure-identity` requests the tokens."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """One `[http.NAME]` of the settings, without its tools."""

    name: str
    base_url: str
    headers: tuple[tuple[str, str | Secret], ...] = ()
    """Sent with every request."""
    secrets: tuple[str, ...] = ()
    """Secret values within `headers`, for redaction."""
    subscription_key: Secret | None = None
    subscription_key_header: str = SUBSCRIPTION_HEADER
    bearer: Secret | None = None
    managed_identity: ManagedIdentity | None = None
    logins: tuple[tuple[str, Login], ...] = ()
    """By the name of their scheme, and sent only with operations that require it."""
    proxy: str | None = None
    """The URL of an HTTP proxy; proxies of the environment are not used."""
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    retries: int = 2
    max_response_bytes: int = _MAX_RESPONSE_BYTES
    files: Path | None = None
    """The folder whose files callers may send by their paths."""
    max_file_bytes: int = _MAX_FILE_BYTES
    """The most that the files of one call may have together."""
    gives_error_bodies: bool = True
    """Whether callers get the JSON with which the API explains why it rejected a request."""
    is_proposed: bool = False
    """Whether the base URL is that of an OpenAPI document, not the operator's own."""
