"""Policy: rules and limits in, a decision out, with the rule that made it. Pure: no I/O.

`decision_and_remedy` has the one function that decides; `limits` declares the limits; `rule` says when a rule
matches, `where_condition` when its `where` does; `reader` makes a policy of what an operator wrote.
"""

from __future__ import annotations

from portbook.policy.decision_and_remedy import Decision, Policy, PolicyInput, ToolPolicy, decide
from portbook.policy.declared_limits import Limits
from portbook.policy.reader import BadPolicy, read_policy
from portbook.policy.rule import Action, Rule

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
