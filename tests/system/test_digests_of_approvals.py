"""What an approval is bound to, by known values: a formula that changes in silence voids every open approval.

Servers are upgraded one by one, and redeem what the version before has asked for. Whoever changes a formula
has to give it a new name, and compare open approvals by the old one too.
"""

from __future__ import annotations

from portbook.access.approval_state_and_binding import binding
from portbook.tools.catalog import Catalog
from portbook.tools.spec import Effect, ToolSpec
from support.approval_world import ASK
from support.policy_tables import policy, rule


def test_the_formulas_of_approvals_give_what_they_gave() -> None:
    spec = ToolSpec(
        "refund", "Refund.", {"type": "object"}, {"type": "string"}, Effect.WRITE, lambda arguments: arguments
    )
    tool = Catalog([spec]).find("refund")
    assert tool is not None
    assert {
        "binding": binding(b"k" * 32, ASK),
        "tool": tool.digest,
        "policy": policy(rule("large", "ask", tools=["refund"])).digest,
    } == {
        "binding": "2b8d0fdb9011136f9ec9010899f64c95dffe456b45cb1cb3642386dffee6adde",
        "tool": "e5b26a169910b8dde6b964a980d12e04018ab1d7ea5c5fc5501a78b50f2a3057",
        "policy": "6cf17db54915f9da4192db44275c186123c1674c94badd52fe31f881cc6d0d42",
    }
