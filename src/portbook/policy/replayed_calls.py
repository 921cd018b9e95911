"""`ReplayedCalls`: on which recorded calls two policies decide differently. Pure: no I/O.

Calls that differ in nothing that the policies look at are decided once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Final, NamedTuple

from portbook.model import JSON, JSONObject
from portbook.policy.decision import Policy
from portbook.policy.replay import Replayed, replay, subject_of

__all__ = ["ReplayedCalls"]

# Decisions that are kept; so many kinds of calls are rare.
_MOST_KEPT: Final = 10_000


class _Redecided(NamedTuple):
    """A call, and what either policy decides on it."""

    tool: str
    caller: str
    was: Replayed
    becomes: Replayed


class ReplayedCalls:
    """Counts calls by how their decision changes from one policy to the other."""

    def __init__(self, before: Policy, after: Policy) -> None:
        self._before = before
        self._after = after
        self._changes: Counter[_Redecided] = Counter()
        self._kept: dict[Hashable, _Redecided | None] = {}
        rules = (*before.rules, *after.rules)
        self._members = ["tool_id", "effect", "caller", "attempt", "endpoint", "method"]
        if any("*" not in rule.sessions for rule in rules):
            self._members.append("session_id")
        if before.limits.max_payload_bytes is not None or after.limits.max_payload_bytes is not None:
            self._members.append("input_bytes")
        self._looks_at_arguments = any(rule.where for rule in rules)
        self.replayed = 0
        self.undecided = 0
        """How many of them lack the arguments that a rule checks."""

    def add(self, record: JSONObject) -> None:
        """Decide the call of an execution record by both; one that policy did not decide is passed over."""
        found = self._decided_again(record)
        if found is None:
            return
        self.replayed += 1
        self.undecided += "unknown" in (found.was.decision, found.becomes.decision)
        if found.was.decision != found.becomes.decision:
            self._changes[found] += 1

    def _decided_again(self, record: JSONObject) -> _Redecided | None:
        if self._looks_at_arguments:
            return self._decide(record)
        key = tuple(str(record.get(member)) for member in self._members)
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = self._decide(record)
        return self._kept[key]

    def _decide(self, record: JSONObject) -> _Redecided | None:
        subject = subject_of(record)
        if subject is None:
            return None
        has_arguments = "arguments" in record
        return _Redecided(
            subject.name,
            subject.caller,
            replay(self._before, subject, has_arguments=has_arguments),
            replay(self._after, subject, has_arguments=has_arguments),
        )

    @property
    def changed(self) -> int:
        """Return how many calls are decided differently."""
        return self._changes.total()

    def as_data(self) -> JSONObject:
        """Return the counts as JSON, ordered by tool and caller."""
        rows: list[JSON] = [
            {
                "tool": each.tool,
                "caller": each.caller,
                "calls": count,
                "old": each.was._asdict(),
                "new": each.becomes._asdict(),
            }
            for each, count in sorted(self._changes.items())
        ]
        return {"replayed": self.replayed, "undecided": self.undecided, "changes": rows}
