"""Findings of `portbook scan`, in the formats of people, programs, GitHub and editors. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import click

from portbook.cli.scanned_source import FoundAttack, ScannedServer
from portbook.cli.validate_and_diff_formats import (
    github_line,
    json_line,
    sarif_document,
    sarif_location,
    shown,
)
from portbook.scan.finding import ScanCheck, Tier

__all__ = ["SCAN_FORMATS", "scan_summary"]

_COLOURS: Final = {Tier.HARD: "red", Tier.SOFT: "yellow"}
_LEVELS: Final = {Tier.HARD: "error", Tier.SOFT: "warning"}

_MEANINGS: Final = {
    ScanCheck.HIDDEN: "No characters that people do not see.",
    ScanCheck.SHADOWING: "No reach for the tool of a different server.",
    ScanCheck.ENCODED: "No text that decodes into commands, addresses or directives.",
    ScanCheck.DIRECTIVES: "No orders to the model that are about more than the tool.",
    ScanCheck.EFFECT: "The effect is the one that is promised.",
    ScanCheck.SECRETS: "No tokens and no private keys.",
}


def _found(servers: Iterable[ScannedServer]) -> Iterator[tuple[ScannedServer, FoundAttack]]:
    for server in servers:
        for each in server.found:
            yield server, each


def _title(server: ScannedServer, each: FoundAttack) -> str:
    what = "instructions" if each.kind == "server" else f"{each.kind} {each.name}"
    return f"{server.name}: {what}: {each.finding.pointer}"


def _said(server: ScannedServer, each: FoundAttack) -> str:
    return shown(f"{_title(server, each)}: {each.finding.check.value}: {each.finding.why}")


def _text(servers: list[ScannedServer]) -> str:
    lines: list[str] = []
    for server in servers:
        if server.problem is not None:
            kind = click.style("not scanned:", fg="red", bold=True)
            lines.append(f"{shown(server.path)}: {kind} {shown(server.name)}: {shown(server.problem)}")
        for each in server.found:
            tier = each.finding.tier
            place = shown(server.path) + (f":{each.span.line}:{each.span.column}" if each.span else "")
            kind = click.style(f"{tier.value}:", fg=_COLOURS[tier], bold=True)
            lines.append(f"{click.style(place, bold=True)}: {kind} {_said(server, each)}")
    return "".join(f"{line}\n" for line in lines)


def _json(servers: list[ScannedServer]) -> str:
    told = [
        {
            "file": server.path,
            "name": server.name,
            "definitions": server.count,
            "problem": server.problem,
            "findings": [
                {
                    "kind": each.kind,
                    "name": each.name,
                    **each.finding.as_data(),
                    "line": each.span.line if each.span else None,
                    "column": each.span.column if each.span else None,
                }
                for each in server.found
            ],
        }
        for server in servers
    ]
    is_ok = not any(server.problem for server in servers) and not _hard(servers)
    return json_line({"ok": is_ok, "servers": told})


def _github(servers: list[ScannedServer]) -> str:
    problems = [
        github_line("error", server.path, None, f"{server.name}: not scanned: {server.problem}")
        for server in servers
        if server.problem is not None
    ]
    found = [
        github_line(_LEVELS[each.finding.tier], server.path, each.span, _said(server, each))
        for server, each in _found(servers)
    ]
    return "".join(problems + found)


def _sarif(servers: list[ScannedServer]) -> str:
    rules = [{"id": check.value, "shortDescription": {"text": words}} for check, words in _MEANINGS.items()]
    results: list[dict[str, Any]] = [
        {
            "ruleId": each.finding.check.value,
            "level": _LEVELS[each.finding.tier],
            "message": {"text": _said(server, each)},
            "locations": [sarif_location(server.path, each.span)],
        }
        for server, each in _found(servers)
    ]
    return sarif_document(rules, results)


SCAN_FORMATS: Final[dict[str, Callable[[list[ScannedServer]], str]]] = {
    "text": _text,
    "json": _json,
    "github": _github,
    "sarif": _sarif,
}


def _hard(servers: Iterable[ScannedServer]) -> int:
    return sum(each.finding.tier is Tier.HARD for _, each in _found(servers))


def scan_summary(servers: list[ScannedServer]) -> str:
    """Return one line: how much was scanned, and what was found."""
    count, hard = sum(server.count for server in servers), _hard(servers)
    soft = sum(len(server.found) for server in servers) - hard
    scanned = "1 definition" if count == 1 else f"{count:,} definitions"
    return f"{scanned} scanned, {hard} hard and {soft} soft findings"
