"""What an operator is warned of at start: likely mistakes in the settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from portbook.app.operator_key import operator_key_doubts
from portbook.app.policy_doubts import policy_doubts
from portbook.policy import Policy
from portbook.settings import Settings
from portbook.tools.spec import ToolSpec

__all__ = ["doubts_of"]


def doubts_of(
    settings: Settings, policy: Policy, specs: Iterable[ToolSpec], environ: Mapping[str, str]
) -> list[str]:
    """Return likely mistakes of the operator: rules that match nothing, secret variables that are not set."""
    doubts = policy_doubts(settings, policy, list(specs))
    for name in settings.secret_variables:
        if not environ.get(name):
            place = settings.place_of("redaction", "secrets")
            doubts.append(f"{place}: the environment variable {name} is not set; its value is not redacted")
    return [*doubts, *operator_key_doubts(environ)]
