"""What `portbook adopt` says: the table of servers, their sandboxes, changed files, what happens now."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from portbook.adopt.client_document import decoded
from portbook.adopt.file_change import FileChange
from portbook.adopt.json_toml_yaml_edits import toml_value
from portbook.adopt.servers_and_aliases import AdoptedServer, FoundServer
from portbook.app.rules_from_settings import policy_of
from portbook.escaping import escaped, escaped_lines
from portbook.model import JSON
from portbook.pins.approved_definitions_in_lock import PinLock
from portbook.pins.change_grades import harm_of
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.pins.served_or_withheld import PinVerdicts
from portbook.policy import Action, PolicyInput, decide
from portbook.scan.scanned_text_and_finding import ScanCheck, ScanFinding
from portbook.settings import Settings
from portbook.stores.caller_keys import ANONYMOUS
from portbook.tools.spec import Effect
from portbook.upstreams.listed_definitions import ObservedDefinition
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.names_effects_and_skills import specs_of

__all__ = [
    "OfferedDecision",
    "ServerRow",
    "difference",
    "found_line",
    "masked",
    "offered_decisions",
    "sandbox_lines",
    "shown_lines",
    "table_lines",
    "verdict_lines",
]

_HEAD: Final = ("CLIENT", "SERVER", "COMMAND OR ADDRESS", "TOOLS", "DESTRUCTIVE", "SECRETS", "NOTE")
_MAX_WIDTH: Final = 48
_LEAST_WIDTH: Final = 18
_HARM: Final = 2
# How many tools a cell names.
_NAMED: Final = 3
_WORDS: Final = {Action.ALLOW: "allowed", Action.ASK: "asked about first", Action.DENY: "denied"}


class DestructiveTools(NamedTuple):
    """What is known of the harm that tools of a server do."""

    names: tuple[str, ...]
    """Those that destroy, by what they say or by the scan."""
    open: int
    """How many do not say; MCP takes them for destructive."""


class ServerRow(NamedTuple):
    """One row of the table."""

    found: FoundServer
    server: AdoptedServer | None
    offered: ServerDefinitions | None
    verdicts: PinVerdicts
    left: str | None

    @property
    def destructive(self) -> DestructiveTools:
        """Return which tools destroy, by what they say and by the scan."""
        tools = (self.offered or ServerDefinitions()).tools
        found = {name for name, parts in tools.items() if _says_destructive(parts.get("annotations"))}
        found |= {
            name
            for (kind, name), verdict in self.verdicts.items()
            if kind == "tool" and any(map(_contradicts_hints, verdict.findings))
        }
        harmful = {name for name, parts in tools.items() if harm_of(parts.get("annotations")) >= _HARM}
        return DestructiveTools(tuple(sorted(found)), len(harmful - found))


def found_line(found: Sequence[FoundServer], asked: int) -> str:
    """Return what the files say by themselves; `asked` is how many servers are asked now."""
    titles = list(dict.fromkeys(each.place.client.title for each in found))
    secrets = sum(each.clear_secrets for each in found)
    names = Counter(each.identity for each in found if each.left is None)
    twice = sum(count > 1 for count in names.values())
    told = [
        f"found {len(found)} {'entry' if len(found) == 1 else 'entries'} of {', '.join(titles)}",
        f"{secrets} {'secret' if secrets == 1 else 'secrets'} in the clear" if secrets else "",
        f"{twice} in more than one place" if twice else "",
        f"asking {asked} {'server what it offers' if asked == 1 else 'servers what they offer'}"
        if asked
        else "",
    ]
    return "; ".join(filter(None, told))


def table_lines(rows: Sequence[ServerRow], width: int | None = None) -> Iterator[str]:
    """Yield the table of the servers that were found.

    In a terminal, whose `width` is known, long cells are cut, and why a server is left is told below the
    table: in it, the reason would break the rows.
    """
    cells = [_HEAD, *(_cells(row, tells_why=width is None) for row in rows)]
    most = _MAX_WIDTH if width is None else max(min(_MAX_WIDTH, width // 4), _LEAST_WIDTH)
    widths = [min(max(len(each[at]) for each in cells), most) for at in range(len(_HEAD) - 1)]
    for each in cells:
        padded = [_cut(cell, wide).ljust(wide) for cell, wide in zip(each, widths, strict=False)]
        yield "  ".join([*padded, each[-1]]).rstrip()
    for row in rows:
        if width is not None and row.left is not None:
            yield escaped(f"{row.found.name} of {row.found.place.client.title} is left in place: {row.left}")


def _cells(row: ServerRow, *, tells_why: bool) -> tuple[str, ...]:
    found, offered = row.found, row.offered
    attacks = sum(verdict.is_quarantined for verdict in row.verdicts.values())
    notes = [] if row.left is None else [f"left in place: {row.left}" if tells_why else "left in place"]
    if attacks:
        notes.append(f"{attacks} with hard findings of the scan: not approved")
    if row.server is not None and row.server.alias != found.name:
        notes.append(f"becomes {row.server.alias}")
    if row.server is not None and len({each.place.client.name for each in row.server.found}) > 1:
        notes.append("in several clients")
    texts = (
        found.place.client.title,
        found.name,
        found.shown,
        "" if offered is None else str(len(offered.tools)),
        _told(row.destructive),
        str(found.clear_secrets or ""),
        "; ".join(notes),
    )
    return tuple(escaped(text) for text in texts)


def _contradicts_hints(finding: ScanFinding) -> bool:
    return finding.check is ScanCheck.EFFECT and finding.pointer.startswith("/annotations")


def _says_destructive(annotations: JSON) -> bool:
    hints = annotations if isinstance(annotations, dict) else {}
    return hints.get("destructiveHint") is True and hints.get("readOnlyHint") is not True


def _told(tools: DestructiveTools) -> str:
    shown = ", ".join(tools.names[:_NAMED]) + ("" if len(tools.names) <= _NAMED else ", …")
    told = [f"{len(tools.names)}: {shown}"] if tools.names else []
    return "; ".join([*told, f"{tools.open} do not say"] if tools.open else told)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def sandbox_lines(rows: Iterable[ServerRow]) -> Iterator[str]:
    """Yield the sandbox that is proposed for each server."""
    servers = {row.server.alias: row.server for row in rows if row.server is not None}
    for alias, server in servers.items():
        if server.sandbox is not None:
            yield escaped_lines(f"{alias}: sandbox = {toml_value(server.sandbox)}")
    alone = [alias for alias, each in servers.items() if each.sandbox and not each.sandbox["connect"]]
    if alone:
        yield (
            f"Without network: {', '.join(alone)}. No tool was called in the trial: "
            "a server whose tools use the internet needs connect = [443] in its sandbox."
        )


def verdict_lines(
    decisions: Iterable[OfferedDecision], withheld: Mapping[str, int], settings: Path
) -> Iterator[str]:
    """Yield in plain words what happens from now on to calls of the adopted servers."""
    found = list(decisions)
    for server in sorted({each.server for each in found} | withheld.keys()):
        own = [each for each in found if each.server == server]
        counts = Counter(each.action for each in own)
        told = [
            f"{counts[action]} {_WORDS[action]} ({_names(own, action)})"
            for action in Action
            if counts[action]
        ]
        if withheld.get(server):
            told.append(f"{withheld[server]} withheld, see `portbook scan --config {settings}`")
        yield f"{server}: {'; '.join(told) or 'nothing is approved'}"
    yield f'To allow only calls that read, put this line below [policy] in {settings}: effects = ["read"]'


def _names(decisions: list[OfferedDecision], action: Action) -> str:
    names = [each.name.partition(".")[2] for each in decisions if each.action is action]
    shown = ", ".join(map(escaped, names[:4]))
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


# The difference of a file that `portbook adopt` changes, as `patch` reads it.
#
# It is exact but for secrets, which are masked: a line with one cannot be applied.

_MASK: Final = "[redacted]"
_NO_FINAL_NEWLINE: Final = "\\ No newline at end of file\n"
_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}
# A shorter secret is only taken for itself where it stands alone: it would blot out parts of words.
_LEAST_LENGTH: Final = 6


def difference(change: FileChange, secrets: Collection[str]) -> str:
    """Return the unified difference of one file, with each of the `secrets` masked."""
    lines = difflib.unified_diff(
        _lines(b"" if change.before is None else change.before, secrets),
        _lines(change.after, secrets),
        "/dev/null" if change.before is None else str(change.path),
        str(change.path),
    )
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_FINAL_NEWLINE}" for line in lines)


def shown_lines(text: str) -> Iterator[str]:
    """Yield the lines of a difference for a terminal: in colours, and without its control characters."""
    for line in text.removesuffix("\n").split("\n"):
        shown = "\t".join(map(escaped_lines, line.removesuffix("\r").split("\t")))
        yield click.style(shown, fg=_COLOURS.get(line[:1]))


def _lines(data: bytes, secrets: Collection[str]) -> list[str]:
    """Return the lines of a file as `patch` counts them: only a line feed ends one."""
    text = masked(decoded(data), secrets)
    return [line for line in re.split(r"(?<=\n)", text) if line]


def masked(text: str, secrets: Collection[str]) -> str:
    """Return a text with each of the `secrets` masked, however JSON writes it."""
    for secret in sorted(secrets, key=len, reverse=True):
        for written in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
            if len(secret) >= _LEAST_LENGTH:
                text = text.replace(written, _MASK)
            elif secret:
                text = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", _MASK, text)
    return text


# What policy decides on the approved tools of MCP servers, without asking them.


class OfferedDecision(NamedTuple):
    """What happens to a call of one tool, whatever its arguments are."""

    server: str
    name: str
    effect: Effect
    action: Action


def offered_decisions(settings: Settings, declared: Iterable[DeclaredUpstream]) -> Iterator[OfferedDecision]:
    """Yield the decision on every approved tool.

    Raises `BadSettings` and `BadLock` for what cannot be used.
    """
    pins = PinLock.read(settings.folder).servers
    policy = policy_of(settings, ())
    for server in declared:
        approved = pins.get(server.alias, ServerDefinitions())
        definitions = [
            ObservedDefinition(server.alias, "tool", name, {"name": name, **parts})
            for name, parts in approved.tools.items()
        ]
        for spec in specs_of(server, definitions, completes=False):
            decision = decide(policy, PolicyInput.of(spec, {}, caller=ANONYMOUS.name))
            yield OfferedDecision(server.alias, spec.declared, spec.effect, decision.action)
