"""`call_filter`: which recorded calls somebody asks for. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from portbook.audit.call_index import CallRow
from portbook.globs import matches, problem_of
from portbook.tools.tool_names import TOOL_PREFIX

__all__ = ["FILTERS", "STATUSES", "BadFilter", "call_filter", "moment_of", "position_of", "status_of"]

STATUSES: Final = ("success", "refused", "failed")
# From here on, a status says that the tool or its way failed; below, that the call was refused.
_FAILED: Final = 500
# No log has as many lines, and Python refuses to read a number of thousands of digits.
_LINE_DIGITS: Final = 16


class BadFilter(Exception):
    """A filter that cannot be used: its name and what it must be."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name = name
        self.problem = problem


def call_filter(asked: Mapping[str, str]) -> Callable[[CallRow], bool]:
    """Return what a call must be for all of `asked` to hold.

    Raises `BadFilter` for a value that cannot be used.
    """
    unknown = next((name for name in asked if name not in _TESTS), None)
    if unknown is not None:
        raise BadFilter(unknown, f"is no filter; use {', '.join(FILTERS)}")
    tests = [_TESTS[name](value) for name, value in asked.items()]
    return lambda row: all(test(row) for test in tests)


def moment_of(name: str, text: str) -> str:
    """Return a time in the form that records have, which sorts as times do.

    Raises `BadFilter` for what is no time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadFilter(name, "must be a time such as 2026-01-31 or 2026-01-31T09:30:00Z") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def position_of(name: str, text: str) -> tuple[str, str, int]:
    """Return the position that a row's `cursor` or a time stands for; a time is before every call of it.

    Raises `BadFilter` for what is neither.
    """
    match text.split(","):
        case [at, file, line] if line.isdecimal() and len(line) < _LINE_DIGITS:
            return at, file, int(line)
        case _:
            return moment_of(name, text), "", 0


def status_of(row: CallRow) -> str:
    """Return how a call ended: with success, refused, or failed."""
    if row.reason is None:
        return "success"
    return "failed" if row.code >= _FAILED else "refused"


def _of_tool(pattern: str) -> Callable[[CallRow], bool]:
    wanted = pattern.removeprefix(TOOL_PREFIX)
    if problem := problem_of(wanted):
        raise BadFilter("tool", f"must be a name or a pattern: {problem}")
    known: dict[str | None, bool] = {None: False}  # many calls, few tools

    def is_wanted(row: CallRow) -> bool:
        found = known.get(row.tool)
        if found is None:
            assert row.tool is not None
            found = known[row.tool] = matches((wanted,), row.tool.removeprefix(TOOL_PREFIX))
        return found

    return is_wanted


def _by_rule(name: str) -> Callable[[CallRow], bool]:
    # A record names the rule with its place, which moves when lines above it are edited.
    placed = f"{name} ("
    return lambda row: row.rule is not None and (row.rule == name or row.rule.startswith(placed))


def _with_status(value: str) -> Callable[[CallRow], bool]:
    if value.isdecimal():
        return lambda row: str(row.code) == value
    if value == "failure":
        return lambda row: row.reason is not None
    if value not in STATUSES:
        raise BadFilter("status", f"must be one of {', '.join(STATUSES)}, failure, or a number such as 403")
    return lambda row: status_of(row) == value


def _since(value: str) -> Callable[[CallRow], bool]:
    since = moment_of("since", value)
    return lambda row: row.at >= since


def _until(value: str) -> Callable[[CallRow], bool]:
    until = moment_of("until", value)
    return lambda row: row.at < until


_TESTS: Final[Mapping[str, Callable[[str], Callable[[CallRow], bool]]]] = {
    "tool": _of_tool,
    "caller": lambda value: lambda row: row.caller == value,
    "door": lambda value: lambda row: row.door is not None and row.door.startswith(value),
    "decision": lambda value: lambda row: row.decision == value,
    "rule": _by_rule,
    "status": _with_status,
    "reason": lambda value: lambda row: row.reason == value,
    "approval": lambda value: lambda row: row.approval == value,
    "since": _since,
    "until": _until,
}
FILTERS: Final = tuple(_TESTS)
