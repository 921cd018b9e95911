"""Which records a command is about: by time, tool and status."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import click

from portbook.globs import matches
from portbook.model import JSONObject
from portbook.tools.spec import TOOL_PREFIX

__all__ = ["record_filter", "status_of"]


def status_of(record: JSONObject) -> str:
    """Return whether the call of a record succeeded."""
    return "failure" if "error_class" in record else "success"


def record_filter(
    since: str | None, until: str | None, tools: tuple[str, ...], status: str | None
) -> Callable[[JSONObject], bool]:
    """Return what a record must be: between two times, of these tools, with this status."""
    first, end = _asked("--since", since), _asked("--until", until)
    patterns = [pattern.removeprefix(TOOL_PREFIX) for pattern in tools]
    if status is not None and status not in ("success", "failure") and not status.isdecimal():
        raise click.UsageError("--status is success, failure or a number such as 403")

    def is_wanted(record: JSONObject) -> bool:
        at = _moment(str(record.get("timestamp")))
        if (first and (at is None or at < first)) or (end and (at is None or at >= end)):
            return False
        if patterns and not matches(patterns, str(record.get("tool_id")).removeprefix(TOOL_PREFIX)):
            return False
        return status is None or status in (status_of(record), str(record.get("status_code")))

    return is_wanted


def _asked(option: str, text: str | None) -> datetime | None:
    moment = None if text is None else _moment(text)
    if text is not None and moment is None:
        raise click.UsageError(f"{option} is a time such as 2026-01-31 or 2026-01-31T09:30:00Z")
    return moment


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
