"""The limits of a policy: the keys of `[policy]` beside its rules, declared once; deadlines. Pure: no I/O."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from portbook.text.named_tuple import NamedTuple
from portbook.tools.spec import Effect

__all__ = [
    "LIMIT_CHOICES",
    "LIMIT_NAMES",
    "ApprovalByDefault",
    "Limits",
    "needs_approval_by_default",
    "timeout_ms_of",
]

# Which effects need approval where no rule decides: the setting `policy.approval`.

ApprovalByDefault = Literal["never", "writes", "always"]


def needs_approval_by_default(approval: ApprovalByDefault, effect: Effect) -> bool:
    """Return whether a call with this effect needs approval: every effect but `read` counts as a write."""
    return approval == "always" or (approval == "writes" and effect is not Effect.READ)


_Default: TypeAlias = Literal["allow", "deny"]
_Approver: TypeAlias = Literal["operator", "client"]


class Limits(NamedTuple):
    """What no rule can lift, and what happens where no rule decides, as the operator wrote it.

    `settings/declared_settings.py` says what each one means and takes its default from here; the places and
    the digest of a policy follow these fields.
    """

    allowed_domains: tuple[str, ...] | None = None
    allowed_networks: tuple[str, ...] = ()
    allowed_methods: tuple[str, ...] | None = None
    effects: tuple[str, ...] | None = None
    max_payload_bytes: int | None = None
    max_execution_timeout_ms: int | None = None
    max_attempts: int | None = None
    max_calls_per_minute: int | None = None
    default: _Default = "allow"
    approval: ApprovalByDefault = "never"
    approver: _Approver = "operator"
    require_redaction: bool = False


LIMIT_NAMES: Final = Limits._fields
# By name, of those that are one of a few words.
LIMIT_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "default": get_args(_Default),
    "approval": get_args(ApprovalByDefault),
    "approver": get_args(_Approver),
}


# How long a call may run; an executor keeps the deadline.


def timeout_ms_of(own_ms: int | None, default_ms: int, limits: Limits) -> int:
    """Return the time that a call of a tool may take, in milliseconds.

    1. The tool's own timeout; without one, the default of the settings.
    2. Never more than policy allows (`max_execution_timeout_ms`).
    """
    timeout_ms = own_ms or default_ms
    longest = limits.max_execution_timeout_ms
    return timeout_ms if longest is None else min(timeout_ms, longest)
