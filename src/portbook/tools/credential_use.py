"""`CredentialUse`: where an operation sends one of its gateway's credentials. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["CredentialForm", "CredentialPlace", "CredentialUse"]

CredentialPlace: TypeAlias = Literal["header", "query", "cookie"]
# How the secret is written there: as it is, after `Bearer`, or with a user's name after `Basic`.
CredentialForm: TypeAlias = Literal["plain", "bearer", "basic"]


@dataclass(frozen=True, slots=True)
class CredentialUse:
    """One credential in the requests of an operation."""

    credential: str
    """Its name in the settings, which is that of its security scheme."""
    place: CredentialPlace
    name: str
    """The name of the header, the query parameter or the cookie."""
    form: CredentialForm = "plain"
