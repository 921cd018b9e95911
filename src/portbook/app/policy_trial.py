"""How policy decides calls that are not made, and what a changed one would have decided on recorded calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, cast

from portbook.access.callers import ANONYMOUS, AllowedKey
from portbook.app.rules_from_settings import policy_of
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.log_reader import files_in, lines_from_end, record_of, stream_folder
from portbook.errors import Reason
from portbook.globs import matches
from portbook.model import JSON, JSONObject
from portbook.policy import Action, Decision, Policy, PolicyInput, decide
from portbook.policy.replay import ReplayedCalls
from portbook.settings import Settings
from portbook.settings.loading import with_policy
from portbook.settings.toml_file import parse_toml
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.catalog import Tool
from portbook.tools.spec import ToolSpec
from portbook.wire.violations import violations_of

__all__ = ["PlacedKey", "PolicyTrial", "decide_call", "doubt_about", "explanation", "placed_keys"]

# How policy decides a call that is not made: what `portbook explain` says, also over HTTP.


class PlacedKey(NamedTuple):
    """A key of a caller, and where it is given."""

    key: AllowedKey
    place: str


def placed_keys(settings: Settings, stored: Iterable[AllowedKey], place: str) -> tuple[PlacedKey, ...]:
    """Return the keys of the settings and of the store, each with its place."""
    given = [
        PlacedKey(key, settings.place_of("keys", "allow", number))
        for number, key in enumerate(settings.allowed_keys)
    ]
    return (*given, *(PlacedKey(key, place) for key in stored))


def doubt_about(caller: str, keys: Iterable[PlacedKey]) -> str | None:
    """Return a warning about a caller that no key names, or None; without keys, it is for a later one."""
    names = sorted({placed.key.name for placed in keys})
    if not names or caller == ANONYMOUS.name or caller in names:
        return None
    hint = did_you_mean(caller, names, "`portbook keys create` makes one")
    return f"no key has the caller {caller!r}; {hint}"


def decide_call(
    policy: Policy,
    keys: Sequence[PlacedKey],
    tool: Tool,
    arguments: JSONObject,
    *,
    caller: str = ANONYMOUS.name,
    attempt: int = 1,
    session: str | None = None,
) -> Decision:
    """Return what policy decides on a call; a tool that the caller's key does not open is denied.

    Raises `NotJSON` for arguments that JSON cannot hold.
    """
    own = [placed for placed in keys if placed.key.name == caller]
    if own and not any(matches(placed.key.tools, tool.spec.name) for placed in own):
        return Decision(
            Action.DENY,
            "the key's tools",
            own[0].place,
            "add the tool to those of the key; to its caller the tool does not exist",
            Reason.UNKNOWN_TOOL,
        )
    subject = PolicyInput.of(tool.spec, arguments, caller=caller, attempt=attempt, session=session)
    return decide(policy, subject)


def explanation(tool: Tool, decision: Decision, arguments: JSONObject) -> JSONObject:
    """Return a decision as JSON: by which rule, where that stands, and what would change it."""
    findings = () if tool.input.allows(arguments) else tool.input.findings(arguments)
    violations: list[JSON] = [{**each} for each in violations_of(findings)]
    return {
        "tool": tool.spec.identifier,
        "effect": tool.spec.effect.value,
        "decision": decision.action.value,
        "rule": decision.rule,
        "place": decision.place,
        "reason": None if decision.reason is None else decision.reason.value,
        "remedy": decision.remedy,
        "violations": violations,
    }


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
