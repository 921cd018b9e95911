"""An API gateway as declared: where it stands, how to prove who we are, what it may send. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["SUBSCRIPTION_HEADER", "Gateway", "ManagedIdentity", "Secret"]

# Azure API Management's own name for it.
SUBSCRIPTION_HEADER: Final = "Ocp-Apim-Subscription-Key"

# As much as a message may have at the doors: what is larger could not be handed on as one.
_MAX_RESPONSE_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret is found. It is read when it is needed, and never written anywhere."""

    env: str | None = None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class ManagedIdentity:
    """The identity that the platform gives this machine, and for which resource its tokens are."""

    resource: str
    client_id: str | None = None
    """Which identity, where the machine has several."""
    uses_library: bool = False
    """Whether the optional `azure-identity` gets the tokens, and not we."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """One `[http.NAME]` of the settings, without its tools."""

    name: str
    base_url: str
    headers: tuple[tuple[str, str | Secret], ...] = ()
    """Sent with every request."""
    subscription_key: Secret | None = None
    subscription_key_header: str = SUBSCRIPTION_HEADER
    bearer: Secret | None = None
    managed_identity: ManagedIdentity | None = None
    proxy: str | None = None
    """The URL of an HTTP proxy; none is used that is not named here."""
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    retries: int = 2
    max_response_bytes: int = _MAX_RESPONSE_BYTES
