"""`portbook scan`: finds attacks in the definitions of MCP servers, offline and from the text alone.

What is scanned: servers of settings, lock files, files of definitions. Findings as text, JSON, GitHub, SARIF.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import click

from portbook.app.servers_asked_once import ask_servers, declared_servers
from portbook.assets.json_files import CannotRead, read_named
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, say, stop_with, verdict_or_none
from portbook.cli.validate_and_diff_formats import (
    github_line,
    json_line,
    sarif_document,
    sarif_location,
    shown,
)
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.pins.approved_definitions_in_lock import PinLock
from portbook.pins.pinned_definitions import PinnedKind, ServerDefinitions
from portbook.scan.definition_scan import scan_definition
from portbook.scan.scanned_text_and_finding import ScanCheck, ScanFinding, Tier
from portbook.scan.shadowing import Neighbours
from portbook.schema.violation_wording import whole_pointer
from portbook.stores.lock_file import LOCK_NAME
from portbook.upstreams.trust_by_lock import pinned_part
from portbook.wire.parsing import parse
from portbook.wire.source_positions import Span, locate, span_at

__all__ = ["command"]


# Findings of `portbook scan`, in the formats of people, programs, GitHub and editors.

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


# The verb.


@click.command("scan")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--format",
    "form",
    type=click.Choice(list(SCAN_FORMATS)),
    default="text",
    show_default=True,
    help="Output format.",
)
@json_option("Print JSON; the same as --format json.")
@config_option
def command(paths: tuple[Path, ...], *, form: str, is_json: bool, config: Path | None) -> None:
    """Scan the definitions of MCP servers for attacks on the model.

    PATHS are lock files, files of definitions in JSON (a list of tools, or an answer to tools/list), or
    settings files (.toml), whose servers are asked what they offer. Without PATHS, the servers of the
    settings are asked. Nothing is sent anywhere else, and no model is used.

    A hard finding is one that no honest definition needs; the definition is withheld unless a person approved
    it. A soft one makes a person look at a change. The exit code is 0 if there is no hard finding, 1 if there
    is one, and 2 if something could not be scanned.
    """
    out = claim_stdout()
    with verdict_or_none(out):
        try:
            servers = _scanned(paths, config)
        except START_ERRORS as error:
            raise stop_with(error) from None
        click.echo(SCAN_FORMATS["json" if is_json else form](servers), out, nl=False)
        out.flush()
        say(scan_summary(servers))
        raise click.exceptions.Exit(_exit_code(servers))


def _scanned(paths: tuple[Path, ...], config: Path | None) -> list[ScannedServer]:
    if not paths:
        return scan_servers(config)
    return [
        server
        for path in paths
        for server in (scan_servers(path) if path.suffix == ".toml" else scan_file(path))
    ]


def _exit_code(servers: list[ScannedServer]) -> ExitCode:
    if any(server.problem is not None for server in servers):
        return ExitCode.INVALID
    is_hard = any(each.finding.tier is Tier.HARD for server in servers for each in server.found)
    return ExitCode.FAILURE if is_hard else ExitCode.SUCCESS


# What `portbook scan` looks at: servers of a settings file, a lock file, or a file of definitions.


# A file of definitions; the lists of all servers that anybody has are far below.
_MAX_BYTES: Final = 64 * 1024 * 1024
_LISTS: Final = (("tool", "tools"), ("prompt", "prompts"))


# The place of a definition in its source, by server, kind and name.
_PlaceOf: TypeAlias = Callable[[str, PinnedKind, str], str]


@dataclass(frozen=True, slots=True)
class FoundAttack:
    """A finding, with the definition that it is in and its place in a file."""

    kind: PinnedKind
    name: str
    finding: ScanFinding
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class ScannedServer:
    """One server of a source."""

    path: str
    name: str
    count: int = 0
    """How many definitions were scanned."""
    found: tuple[FoundAttack, ...] = ()
    problem: str | None = None
    """Why there is no verdict."""


def scan_servers(config: Path | None) -> list[ScannedServer]:
    """Ask the servers of the settings what they offer, and return what is found in it.

    Raises `BadSettings` for settings that cannot be used.
    """
    settings = settings_from(config)
    declared = {each.alias: each for each in declared_servers(settings)}
    if not declared:
        # A check in CI that looks at nothing must not pass.
        problem = "no MCP server is configured; name a file of definitions, or settings with --config"
        return [ScannedServer(str(settings.config or "portbook.toml"), "mcp", problem=problem)]
    offers = asyncio.run(ask_servers(settings, declared.values(), os.environ))
    observed = {
        alias: offer if isinstance(offer, str) else pinned_part(declared[alias], offer)
        for alias, offer in offers.items()
    }
    path = str(settings.config or "portbook.toml")
    found = _scan(path, {alias: each for alias, each in observed.items() if not isinstance(each, str)})
    failed = [
        ScannedServer(path, alias, problem=each) for alias, each in observed.items() if isinstance(each, str)
    ]
    text = "" if settings.config is None else settings.config.read_text("utf-8", "replace")
    lines = {alias: 1 if settings.file is None else settings.file.line(("mcp", alias)) for alias in declared}
    return [_placed_at(each, text, lines[each.name]) for each in (*found, *failed)]


def scan_file(path: Path) -> list[ScannedServer]:
    """Return what is found in a lock file, or in a file of definitions.

    Raises `BadLock` and `BadSettings` for what cannot be used.
    """
    shown = str(path)
    if path.name == LOCK_NAME:
        pinned = PinLock.read(path.parent)
        return _placed(path.read_text("utf-8"), _scan(shown, pinned.servers), _in_lock)
    try:
        data = read_named(shown, _MAX_BYTES)
        offered, place_of = _definitions(parse(data))
    except CannotRead as error:
        return [ScannedServer(shown, path.stem, problem=str(error))]
    except Refused as refused:
        return [ScannedServer(shown, path.stem, problem=f"not JSON: {refused.findings[0].message}")]
    except _NoDefinitions as error:
        return [ScannedServer(shown, path.stem, problem=str(error))]
    return _placed(data.decode(), _scan(shown, {path.stem: offered}), place_of)


# -- scanning


def _scan(path: str, servers: Mapping[str, ServerDefinitions]) -> list[ScannedServer]:
    scanned: list[ScannedServer] = []
    for alias, offered in servers.items():
        others = {other: each.tools.keys() for other, each in servers.items() if other != alias}
        near = Neighbours(others, own=offered.tools.keys())
        keys = list(offered.names())
        found = [
            FoundAttack(kind, name, finding)
            for kind, name in keys
            for finding in scan_definition(name, offered.of(kind, name) or {}, near, is_tool=kind == "tool")
        ]
        scanned.append(ScannedServer(path, alias, len(keys), tuple(found)))
    return scanned


# -- files of definitions


class _NoDefinitions(Exception):
    """A file without definitions."""


def _definitions(whole: JSON) -> tuple[ServerDefinitions, _PlaceOf]:
    """Return the definitions of an answer to `tools/list`, or of a list of tools, and where each one is.

    Raises `_NoDefinitions` where there are none.
    """
    base = ""
    if isinstance(whole, dict) and isinstance(whole.get("result"), dict):
        whole, base = whole["result"], "/result"
    if isinstance(whole, list):
        lists: JSONObject = {"tools": whole}
        prefix = {"tools": base}
    elif isinstance(whole, dict) and any(isinstance(whole.get(member), list) for _, member in _LISTS):
        lists = whole
        prefix = {member: f"{base}/{member}" for _, member in _LISTS}
    else:
        raise _NoDefinitions("it has no definitions; give a list of tools, or an object with `tools`")
    found: dict[str, list[JSONObject]] = {"tools": [], "prompts": []}
    places: dict[tuple[str, str], str] = {}
    for kind, member in _LISTS:
        for index, each in enumerate(cast("list[JSON]", lists.get(member) or [])):
            if not isinstance(each, dict) or not isinstance(name := each.get("name"), str):
                raise _NoDefinitions(f"{prefix[member]}/{index}: must be an object with a name")
            found[member].append(each)
            places[kind, name] = f"{prefix[member]}/{index}"
    words = lists.get("instructions")
    instructions = words if isinstance(words, str) else None
    offered = ServerDefinitions.observed(found["tools"], found["prompts"], instructions)
    return offered, lambda _, kind, name: places.get((kind, name), base)


# -- places


def _in_lock(alias: str, kind: PinnedKind, name: str) -> str:
    """Return the place of a definition in a lock file."""
    below = () if kind == "server" else (f"{kind}s", name)
    return whole_pointer(("mcp", alias, *below))


def _placed(text: str, scanned: list[ScannedServer], place_of: _PlaceOf) -> list[ScannedServer]:
    """Return the findings with their places in the source."""

    def pointer_of(server: ScannedServer, each: FoundAttack) -> str:
        # A name is the key of its definition in a lock, and the first that is read of it in a list.
        below = "" if each.finding.pointer == "/name" else each.finding.pointer
        return place_of(server.name, each.kind, each.name) + below

    pointers = {(server.name, each): pointer_of(server, each) for server in scanned for each in server.found}
    spans = locate(text, set(pointers.values()))
    return [
        replace(
            server,
            found=tuple(replace(each, span=spans[pointers[server.name, each]]) for each in server.found),
        )
        for server in scanned
    ]


def _placed_at(server: ScannedServer, text: str, line: int) -> ScannedServer:
    span = span_at(text, line, 1)
    return replace(server, found=tuple(replace(each, span=span) for each in server.found))
