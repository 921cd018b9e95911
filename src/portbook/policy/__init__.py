"""Policy: rules and limits in, a decision out, with the rule that made it. Pure: no I/O.

`decision_limits_rules_and_remedy` declares the limits, says when a rule matches, and has the one function
that decides; `where_condition` says when the `where` of a rule does; `policy_table` makes a policy of what an
operator wrote.
"""

from __future__ import annotations

from portbook.policy.decision_limits_rules_and_remedy import (
    Action,
    Decision,
    Limits,
    Policy,
    PolicyInput,
    Rule,
    ToolPolicy,
    decide,
)
from portbook.policy.policy_table import BadPolicy, read_policy

__all__ = [
    "Action",
    "BadPolicy",
    "Decision",
    "Limits",
    "Policy",
    "PolicyInput",
    "Rule",
    "ToolPolicy",
    "decide",
    "read_policy",
]
