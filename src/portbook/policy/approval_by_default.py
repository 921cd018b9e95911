"""Which effects need approval where no rule decides: the setting `policy.approval`. Pure: no I/O."""

from __future__ import annotations

from typing import Literal

from portbook.tools.spec import Effect

__all__ = ["ApprovalByDefault", "needs_approval_by_default"]

ApprovalByDefault = Literal["never", "writes", "always"]


def needs_approval_by_default(approval: ApprovalByDefault, effect: Effect) -> bool:
    """Return whether a call with this effect needs approval: every effect but `read` counts as a write."""
    return approval == "always" or (approval == "writes" and effect is not Effect.READ)
