"""Output of `validate` and `diff`, in the formats of people, programs, GitHub and editors. Pure: no I/O."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from portbook.assets.validate_file import FileProblem, Report
from portbook.canonical import json_bytes
from portbook.escaping import escaped, escaped_json
from portbook.model import JSON, JSONObject
from portbook.version import __version__
from portbook.wire.source_positions import Span

__all__ = [
    "BREAK",
    "FORMATS",
    "REMOVED",
    "UNDECIDED",
    "UNUSABLE",
    "github_line",
    "json_line",
    "lines_of_value",
    "sarif_document",
    "sarif_location",
    "shown",
    "side_by_side",
    "summary",
    "width_of",
]

# Names of files and members are cut here on a terminal; the formats for programs have them whole.
_MAX_SHOWN: Final = 1_024

# Lines of a value that are shown; a whole document would hide what matters.
_MAX_LINES: Final = 12

# The rules of changed schemas: one for each keyword that breaks, and these.
BREAK: Final = "break/"
UNDECIDED: Final = "undecided"
REMOVED: Final = "removed"
UNUSABLE: Final = "unusable"

# What the rules that are no keywords require.
_MEANINGS: Final = {
    "file": "The file can be read.",
    "json": "The file is JSON.",
    "schema": "The file is what its schema allows.",
    UNDECIDED: "The new schema is proved to allow what the old schema allowed.",
    REMOVED: "Every schema of the old folder is in the new one.",
    UNUSABLE: "The schema can be used.",
}


def shown(text: str) -> str:
    """Return a name of a file or a member, or a message with one, as one line without control characters."""
    return escaped(text, _MAX_SHOWN)


def width_of(text: str) -> int:
    """Return how many columns `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _text(reports: Iterable[Report]) -> str:
    """Each problem as compilers print it: the place, the message, the line, and a caret under the value."""
    lines: list[str] = []
    for report in reports:
        for problem in report.problems:
            place = click.style(_place(report, problem), bold=True)
            lines.append(f"{place}: {click.style('error:', fg='red', bold=True)} {_said(problem)}")
            span = problem.span
            if span is not None and span.text.strip():
                value = span.text[span.offset : span.offset + span.width]
                caret = " " * width_of(span.text[: span.offset]) + "^" * max(width_of(value), 1)
                lines += [f"  {span.text}", f"  {click.style(caret, fg='red', bold=True)}"]
    return "".join(f"{line}\n" for line in lines)


def _place(report: Report, problem: FileProblem) -> str:
    span = problem.span
    path = shown(report.path)
    return path if span is None else f"{path}:{span.line}:{span.column}"


def _said(problem: FileProblem) -> str:
    where = f"{shown(problem.pointer)}: " if problem.pointer else ""
    return where + shown(problem.message)


def _readable(name: str) -> str:
    """Return a file's name as text that JSON can hold: bytes that are not UTF-8 are escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def json_line(whole: Any) -> str:
    """Return a JSON document on one line, in which no text can move the cursor."""
    return escaped_json(json_bytes(whole).decode()) + "\n"


def _json(reports: Iterable[Report]) -> str:
    files = [
        {
            "file": _readable(report.path),
            "schema": _readable(report.schema),
            "ok": not report.problems,
            "errors": [
                {
                    "path": problem.pointer,
                    "msg": problem.message,
                    "keyword": problem.rule,
                    "line": problem.span.line if problem.span else None,
                    "column": problem.span.column if problem.span else None,
                }
                for problem in report.problems
            ],
        }
        for report in reports
    ]
    return json_line({"ok": all(file["ok"] for file in files), "files": files})


def _github(reports: Iterable[Report]) -> str:
    """Workflow commands, which GitHub shows beside the lines of a change."""
    return "".join(
        github_line("warning" if problem.is_warning else "error", report.path, problem.span, _said(problem))
        for report in reports
        for problem in report.problems
    )


def github_line(level: str, path: str, span: Span | None, message: str) -> str:
    """Return one workflow command, with its line break."""
    place = [f"file={_property(path)}"]
    if span is not None:
        place += [f"line={span.line}", f"col={span.column}"]
    return f"::{level} {','.join(place)}::{_data(message)}\n"


def _data(text: str) -> str:
    return shown(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(reports: Iterable[Report]) -> str:
    """SARIF 2.1.0, which editors and code scanning read."""
    reports = list(reports)
    used = sorted({problem.rule for report in reports for problem in report.problems})
    results = [_sarif_result(report, problem, used) for report in reports for problem in report.problems]
    rules = [{"id": rule, "shortDescription": {"text": _meaning(rule)}} for rule in used]
    return sarif_document(rules, results)


def sarif_document(rules: list[dict[str, Any]], results: list[dict[str, Any]]) -> str:
    """Return a SARIF document of one run, on one line."""
    driver = {"name": "portbook", "version": __version__, "rules": rules}
    whole = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    return json_line(whole)


def _meaning(rule: str) -> str:
    """Return what a rule requires."""
    if rule in _MEANINGS:
        return _MEANINGS[rule]
    keyword = rule.removeprefix(BREAK)
    if keyword != rule:
        return f"The keyword {keyword} of the new schema allows what the old schema allowed."
    return f"The file is what the keyword {keyword} of its schema allows."


def _sarif_result(report: Report, problem: FileProblem, rules: list[str]) -> dict[str, Any]:
    return {
        "ruleId": problem.rule,
        "ruleIndex": rules.index(problem.rule),
        "level": "warning" if problem.is_warning else "error",
        "message": {"text": _said(problem)},
        "locations": [sarif_location(report.path, problem.span)],
    }


def sarif_location(path: str, span: Span | None) -> dict[str, Any]:
    """Return a place in a file, as SARIF has it."""
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
    if span is not None:
        location["region"] = {
            "startLine": span.line,
            "startColumn": span.column,
            "endColumn": span.column + span.length,
        }
    return {"physicalLocation": location}


def _uri(path: str) -> str:
    named = Path(path)
    return named.as_uri() if named.is_absolute() else quote(os.fsencode(named.as_posix()))


FORMATS: Final[dict[str, Callable[[Iterable[Report]], str]]] = {
    "text": _text,
    "json": _json,
    "github": _github,
    "sarif": _sarif,
}


def summary(reports: Iterable[Report]) -> str:
    """Return one line: how many files were checked, and how many are invalid."""
    reports = list(reports)
    wrong = [report for report in reports if report.problems]
    checked = _count(len(reports), "file")
    if not wrong:
        return f"{checked} checked, all valid"
    errors = _count(sum(len(report.problems) for report in wrong), "error")
    return f"{checked} checked, {len(wrong)} not valid: {errors}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


# -- both sides of a change, side by side


def lines_of_value(value: Any) -> list[str]:
    """Return a value as indented JSON, cut where it is long."""
    lines = escaped_json(json.dumps(value, indent=2, ensure_ascii=False)).split("\n")
    return lines if len(lines) <= _MAX_LINES else [*lines[: _MAX_LINES - 1], f"… {len(lines)} lines"]


def side_by_side(before: JSON, patch: list[JSONObject], room: int) -> Iterator[str]:
    """Yield the lines that show both sides of each change of `before`, each side in `room` columns."""
    for operation in patch:
        path = str(operation["path"])
        yield click.style(shown(path) or "(root)", bold=True)
        left = [] if operation["op"] == "add" else lines_of_value(_value(before, path))
        right = [] if operation["op"] == "remove" else lines_of_value(operation["value"])
        for ours, theirs in zip_longest(left, right, fillvalue=""):
            old = click.style(_cell(ours, room), fg="red")
            yield f"{old} │ {click.style(_cell(theirs, room).rstrip(), fg='green')}"


def _cell(text: str, room: int) -> str:
    """Return `text` in exactly `room` columns, cut where it is longer."""
    width = width_of(text)
    if width <= room:
        return text + " " * (room - width)
    kept = text[: room - 1]
    while width_of(kept) > room - 1:
        kept = kept[:-1]
    return kept + "…" + " " * (room - 1 - width_of(kept))


def _value(document: Any, path: str) -> Any:
    for part in path.split("/")[1:]:
        document = document[part.replace("~1", "/").replace("~0", "~")]
    return document
