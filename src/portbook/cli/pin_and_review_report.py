"""Graded differences of definitions as words and as data, for `portbook pin` and `portbook review`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

import click

from portbook.escaping import escaped, escaped_json
from portbook.model import JSON, JSONObject
from portbook.pins.difference import PartChange
from portbook.pins.on_change import Grade, Reaction
from portbook.pins.standing import PinVerdict, PinVerdicts, Standing
from portbook.scan.finding import Tier

__all__ = [
    "approved_words",
    "differing",
    "finding_lines",
    "instance_lines",
    "report_data",
    "report_words",
    "title_of",
]

_COLOURS: Final = {Reaction.ACCEPT: "green", Reaction.ASK: "yellow", Reaction.BLOCK: "red"}

# What each reaction means for a definition that differs.
_MEANING: Final = {
    Reaction.ACCEPT: "served, as on_change accepts it",
    Reaction.ASK: "withheld until it is reviewed",
    Reaction.BLOCK: "withheld, and a review needs --force",
}


def differing(verdicts: PinVerdicts) -> list[PinVerdict]:
    """Return the verdicts on definitions that are not as approved."""
    return [each for each in verdicts.values() if each.standing is not Standing.APPROVED]


def report_data(alias: str, verdicts: Iterable[PinVerdict], problem: str | None = None) -> JSONObject:
    """Return what is to be said about one server, as JSON."""
    changes: list[JSON] = [each.as_data() for each in verdicts]
    return {"name": alias, "definitions": changes, "problem": problem}


def report_words(alias: str, verdicts: Iterable[PinVerdict], problem: str | None = None) -> Iterator[str]:
    """Yield what is to be said about one server, in lines."""
    if problem is not None:
        yield _not_asked(alias, problem)
        return
    lines = [line for verdict in verdicts for line in (title_of(verdict), *_why(verdict))]
    yield f"{alias}: {'as approved' if not lines else 'not as approved'}"
    yield from (f"  {line}" for line in lines)


def approved_words(
    alias: str, verdicts: Iterable[PinVerdict], problem: str | None = None, *, is_forced: bool
) -> Iterator[str]:
    """Yield what became of the definitions of one server that was pinned, in lines."""
    if problem is not None:
        yield _not_asked(alias, problem)
        return
    lines = [line for verdict in verdicts for line in _approved(verdict, is_forced=is_forced)]
    yield f"{alias}: {'approved before, nothing has changed' if not lines else 'approved as it is now'}"
    yield from (f"  {line}" for line in lines)


def _approved(verdict: PinVerdict, *, is_forced: bool) -> Iterator[str]:
    if verdict.is_quarantined and not is_forced:
        word = click.style("not approved", fg="red", bold=True)
        yield f"{_name_of(verdict)}: {word}: read it, or use --force"
        yield from _why(verdict)
        return
    grades = verdict.difference.grades
    word = next((each.value for each in (Grade.ADDED, Grade.REMOVED) if each in grades), "changed")
    yield f"{_name_of(verdict)}: {word}"
    if word == "changed":
        yield from _why(verdict)


def _not_asked(alias: str, problem: str) -> str:
    return f"{alias}: {click.style('not asked', fg='red')}: {escaped(problem)}"


def _name_of(verdict: PinVerdict) -> str:
    difference = verdict.difference
    is_server = difference.kind == "server"
    return escaped("instructions of the server" if is_server else f"{difference.kind} {difference.name}")


def title_of(verdict: PinVerdict) -> str:
    """Return the name of a definition, and how it stands."""
    difference, reaction = verdict.difference, verdict.reaction
    meaning = _MEANING[reaction]
    if reaction is Reaction.ACCEPT and Grade.REMOVED in difference.grades:
        meaning = "gone, as on_change accepts it"
    standing = click.style(verdict.standing.value, fg=_COLOURS[reaction], bold=True)
    return f"{_name_of(verdict)}: {standing}: {meaning}"


def _why(verdict: PinVerdict) -> Iterator[str]:
    """Yield what is different, in lines."""
    for change in verdict.difference.changes:
        part = f"{escaped(change.part)}: " if change.part else ""
        yield f"  {part}{change.grade.value}: {change.note}"
        yield from (f"    {line}" for line in instance_lines(change))
    yield from (f"  {line}" for line in finding_lines(verdict))


def instance_lines(change: PartChange) -> Iterator[str]:
    """Yield the values that show a change, one in each line."""
    for instance in change.instances:
        yield escaped_json(json.dumps(instance, ensure_ascii=False))


def finding_lines(verdict: PinVerdict) -> Iterator[str]:
    """Yield what the scan found in a definition, in lines."""
    for each in verdict.findings:
        tier = click.style(each.tier.value, fg="red" if each.tier is Tier.HARD else "yellow", bold=True)
        yield f"scan: {tier}: {escaped(each.pointer)}: {each.why}"
