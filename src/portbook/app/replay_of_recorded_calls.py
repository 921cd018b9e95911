"""What a changed policy would have decided on recorded calls, and on which of them it differs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, cast

from portbook.app.rules_from_settings import policy_of
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.log_reader_and_follower import files_in, lines_from_end, record_of, stream_folder
from portbook.model import JSON, JSONObject
from portbook.policy import Policy, PolicyInput, Rule, decide
from portbook.policy.where_condition import Gap, find
from portbook.settings import Settings
from portbook.settings.loading import with_policy
from portbook.settings.toml_file import parse_toml
from portbook.tools.http_operation import HttpOperation
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.tool_names import named_by

__all__ = ["PolicyTrial", "Replayed", "ReplayedCalls", "replay", "subject_of"]

# An operator waits for the answer; what is older than it reaches is not decided, and the answer says so.
_LONGEST_S: Final = 10.0
# The most changes in an answer, each with a tool and a caller.
_MOST_CHANGES: Final = 1000
# So often, calls that run meanwhile get their turn, and the time is looked at.
_BATCH: Final = 200

# What messages call the text of the changed policy.
_SHOWN: Final = "policy"


@dataclass(frozen=True, slots=True)
class PolicyTrial:
    """Two policies, to be compared by what they decide."""

    before: Policy
    after: Policy
    ignored: tuple[str, ...]
    """The tables of the changed file that are not about policy."""

    @classmethod
    def of(cls, policy: Policy, settings: Settings, text: str, specs: Iterable[ToolSpec]) -> PolicyTrial:
        """Return the trial of a settings file against the `policy` in force; its other tables are ignored.

        Raises `BadSettings` for a policy that could not be put into force, with line and column.
        """
        file = parse_toml(text, _SHOWN)
        changed = policy_of(with_policy(settings, file), specs)
        return cls(policy, changed, tuple(sorted(file.document.keys() - {"policy"})))

    def run(
        self,
        log_dir: Path,
        since: str | None = None,
        until: str | None = None,
        tick: Callable[[], float] = time.monotonic,
    ) -> JSONObject:
        """Decide the recorded calls between two times by both policies, the newest of each run first.

        In a thread. Raises `OSError` where a file cannot be read.
        """
        calls, end = ReplayedCalls(self.before, self.after), tick() + _LONGEST_S
        oldest, is_complete = None, True
        for number, record in enumerate(_records(log_dir, since, until), 1):
            calls.add(record)
            moment = _moment(record)
            if oldest is None or moment < oldest:
                oldest = moment
            if number % _BATCH == 0:
                time.sleep(0)
                if tick() >= end:
                    is_complete = False
                    break
        data = calls.as_data()
        changes = cast("list[JSON]", data["changes"])
        return {
            **data,
            "changes": changes[:_MOST_CHANGES],
            "more": max(0, len(changes) - _MOST_CHANGES),
            "complete": is_complete,
            "oldest": oldest,
            "ignored": [*self.ignored],
        }


def _records(log_dir: Path, since: str | None, until: str | None) -> Iterator[JSONObject]:
    """Yield the execution records between two times; records of one file are in the order of time."""
    for path in reversed(files_in(stream_folder(log_dir, EXECUTION_STREAM))):
        for line in lines_from_end(path):
            record = record_of(line)
            if record is None or (until is not None and _moment(record) >= until):
                continue
            if since is not None and _moment(record) < since:
                break
            yield record


def _moment(record: JSONObject) -> str:
    return str(record.get("timestamp"))


# How a different policy would have decided recorded calls.
#
# A record has no arguments unless the operator asked for them, and never secrets or defaults. So a rule
# with a `where` may or may not have matched: a decision is known only if it is the same either way.


class Replayed(NamedTuple):
    """How a policy decides a recorded call."""

    decision: Literal["deny", "ask", "allow", "unknown"]
    rule: str
    """The rule and its place; empty if it is unknown which rule."""


def subject_of(record: JSONObject) -> PolicyInput | None:
    """Return the call of an execution record; None if policy did not decide it."""
    tool, effect = record.get("tool_id"), record.get("effect")
    if not isinstance(tool, str) or not isinstance(effect, str) or effect not in tuple(Effect):
        return None
    arguments = record.get("arguments")
    attempt, size = record.get("attempt"), record.get("input_bytes")
    session = record.get("session_id")
    kind, name = named_by(tool)
    if kind == "completion":  # decided as the resource or prompt that it completes
        kind = "resource" if "://" in name else "prompt"
    return PolicyInput(
        name=name,
        effect=Effect(effect),
        caller=str(record.get("caller") or ""),
        arguments=arguments if isinstance(arguments, dict) else {},
        input_schema={},
        payload_bytes=size if isinstance(size, int) else 0,
        attempt=attempt if isinstance(attempt, int) else 1,
        session=session if isinstance(session, str) else None,
        operation=_operation(record),
        kind=kind,
    )


def replay(policy: Policy, subject: PolicyInput, *, has_arguments: bool) -> Replayed:
    """Return how `policy` decides a recorded call."""
    untold = [rule for rule in policy.rules if not _is_told(rule, subject, has_arguments=has_arguments)]
    # One rule decides, so it is enough to assume each condition in turn to be the only one that is met.
    possible = {_said(_where_met(policy, untold, met), subject) for met in (None, *untold)}
    if len(possible) == 1:
        return possible.pop()
    first = next(iter(possible)).decision
    return Replayed(first if all(each.decision == first for each in possible) else "unknown", "")


def _is_told(rule: Rule, subject: PolicyInput, *, has_arguments: bool) -> bool:
    """Return whether the record has everything that a rule checks; it has no tags.

    A value that is missing or redacted is unknown: the tool may have had a default, and it saw the secret.
    """
    if rule.selects_tags or (rule.where and not has_arguments):
        return False
    found = [find(subject.arguments, {}, condition.segments) for condition in rule.where]
    return not any(isinstance(value, Gap) or _is_taken_out(value) for value in found)


def _is_taken_out(value: JSON) -> bool:
    return isinstance(value, str) and (value == "[redacted]" or value.startswith("[sha256:"))


def _where_met(policy: Policy, untold: list[Rule], met: Rule | None) -> Policy:
    """Return `policy` as if, of the rules in `untold`, only the conditions and tags of `met` were met."""
    rules = (rule._replace(where=(), tags=("*",)) if rule is met else rule for rule in policy.rules)
    return policy._replace(rules=tuple(rule for rule in rules if rule not in untold))


def _said(policy: Policy, subject: PolicyInput) -> Replayed:
    decision = decide(policy, subject)
    return Replayed(decision.action.value, f"{decision.rule} ({decision.place})")


def _operation(record: JSONObject) -> HttpOperation | None:
    endpoint, method = record.get("endpoint"), record.get("method")
    if not isinstance(endpoint, str) or not isinstance(method, str):
        return None
    scheme, _, rest = endpoint.partition("://")
    authority, slash, path = rest.partition("/")
    return HttpOperation(gateway="", base_url=f"{scheme}://{authority}", method=method, path=slash + path)


# `ReplayedCalls`: on which recorded calls two policies decide differently.
#
# Calls that differ in nothing that the policies look at are decided once.

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
