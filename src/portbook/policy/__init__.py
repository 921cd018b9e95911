"""Policy: rules and limits in, a decision out, with the rule that made it. Pure: no I/O.

`deciding` is the one function that decides; `rule` says when a rule matches, `condition` when its `where`
does; `reading` makes a policy of what an operator wrote.
"""

from __future__ import annotations

from portbook.policy.decision import Decision, Policy, PolicyInput, decide
from portbook.policy.reader import BadPolicy, Limits, read_policy
from portbook.policy.rule import Action, Rule

__all__ = [
    "Action",
    "BadPolicy",
    "Decision",
    "Limits",
    "Policy",
    "PolicyInput",
    "Rule",
    "decide",
    "read_policy",
]
