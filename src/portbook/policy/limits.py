"""The limits of a policy: the keys of `[policy]` beside its rules, declared once. Pure: no I/O."""

from __future__ import annotations

from typing import Final, Literal

from portbook.policy.approval_by_default import ApprovalByDefault
from portbook.text.named_tuple import NamedTuple

__all__ = ["LIMIT_NAMES", "Limits"]


class Limits(NamedTuple):
    """What no rule can lift, and what happens where no rule decides, as the operator wrote it.

    `settings/table.py` says what each one means and takes its default from here; the places and the digest of
    a policy follow these fields.
    """

    allowed_domains: tuple[str, ...] | None = None
    allowed_networks: tuple[str, ...] = ()
    allowed_methods: tuple[str, ...] | None = None
    effects: tuple[str, ...] | None = None
    max_payload_bytes: int | None = None
    max_execution_timeout_ms: int | None = None
    max_attempts: int | None = None
    max_calls_per_minute: int | None = None
    default: Literal["allow", "deny"] = "allow"
    approval: ApprovalByDefault = "never"
    approver: Literal["operator", "client"] = "operator"
    require_redaction: bool = False


LIMIT_NAMES: Final = Limits._fields
