"""`ScanFinding`: what a check found in a definition, where, and why that matters. Pure: no I/O.

A finding is in our words alone. It never repeats what the server wrote, which may be an attack or a secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from portbook.model import JSONObject

__all__ = ["ScanCheck", "ScanFinding", "Tier"]


class ScanCheck(StrEnum):
    """The checks, by what they look for."""

    HIDDEN = "hidden"
    """Characters that people do not see and models read."""
    SHADOWING = "shadowing"
    """A definition that reaches over to the tool of a different server, or looks like it."""
    ENCODED = "encoded"
    """Text that decodes into commands, addresses or directives."""
    DIRECTIVES = "directives"
    """Orders to the model that are about more than the tool."""
    EFFECT = "effect"
    """A description that promises a different effect than the name, the arguments and the hints."""
    SECRETS = "secrets"
    """A token or a private key in the definition."""


class Tier(StrEnum):
    """How sure a finding is."""

    HARD = "hard"
    """No honest definition needs it: the definition is withheld."""
    SOFT = "soft"
    """Honest definitions have it at times: a new or changed definition waits for a person."""


@dataclass(frozen=True, slots=True)
class ScanFinding:
    """One finding."""

    check: ScanCheck
    tier: Tier
    pointer: str
    """A JSON Pointer into the definition."""
    why: str

    def as_data(self) -> JSONObject:
        """Return the finding as JSON."""
        return {
            "check": self.check.value,
            "tier": self.tier.value,
            "pointer": self.pointer,
            "why": self.why,
        }
