"""What `portbook adopt` says: the table of servers, the differences, what happens now. Pure: no I/O."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import click

from portbook.adopt.adopted_server import AdoptedServer
from portbook.adopt.client_document import decoded
from portbook.adopt.file_change import FileChange
from portbook.adopt.found_server import FoundServer
from portbook.app.offered_decisions import OfferedDecision
from portbook.escaping import escaped, escaped_lines
from portbook.pins.server_definitions import ServerDefinitions
from portbook.pins.standing import PinVerdicts
from portbook.pins.trusted_hints import harm_of
from portbook.policy import Action

__all__ = ["ServerRow", "difference_lines", "table_lines", "verdict_lines"]

_HEAD: Final = ("CLIENT", "SERVER", "COMMAND OR ADDRESS", "TOOLS", "DESTRUCTIVE", "SECRETS", "NOTE")
_MAX_WIDTH: Final = 48
_HARM: Final = 2
# Shorter values are settings, not secrets, and would blot out half of a file.
_LEAST_SECRET: Final = 6
_WORDS: Final = {Action.ALLOW: "allowed", Action.ASK: "asked about first", Action.DENY: "denied"}


class ServerRow(NamedTuple):
    """One row of the table."""

    found: FoundServer
    server: AdoptedServer | None
    offered: ServerDefinitions | None
    verdicts: PinVerdicts
    left: str | None


def table_lines(rows: Sequence[ServerRow]) -> Iterator[str]:
    """Yield the table of the servers that were found."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [min(max(len(each[at]) for each in cells), _MAX_WIDTH) for at in range(len(_HEAD) - 1)]
    for each in cells:
        padded = [_cut(cell, width).ljust(width) for cell, width in zip(each, widths, strict=False)]
        yield "  ".join([*padded, each[-1]]).rstrip()


def _cells(row: ServerRow) -> tuple[str, ...]:
    found, offered = row.found, row.offered
    tools = (offered or ServerDefinitions()).tools
    harmful = sum(harm_of(parts.get("annotations")) >= _HARM for parts in tools.values())
    attacks = sum(verdict.is_quarantined for verdict in row.verdicts.values())
    notes = [] if row.left is None else [f"left in place: {row.left}"]
    if attacks:
        notes.append(f"{attacks} with hard findings of the scan: not approved")
    if row.server is not None and len({each.place.client.name for each in row.server.found}) > 1:
        notes.append("in several clients")
    texts = (
        found.place.client.title,
        found.name,
        found.shown,
        "" if offered is None else str(len(tools)),
        "" if offered is None else str(harmful),
        str(found.clear_secrets or ""),
        "; ".join(notes),
    )
    return tuple(escaped(text) for text in texts)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def difference_lines(change: FileChange, secrets: Iterable[str]) -> Iterator[str]:
    """Yield the difference of one file; secrets are not shown."""
    before = "" if change.before is None else _shown(change.before, secrets)
    lines = difflib.unified_diff(
        before.splitlines(),
        _shown(change.after, secrets).splitlines(),
        "/dev/null" if change.before is None else str(change.path),
        str(change.path),
        lineterm="",
    )
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        shown = "\t".join(map(escaped_lines, line.split("\t")))
        yield click.style(shown, fg=colours.get(line[:1]))


def _shown(data: bytes, secrets: Iterable[str]) -> str:
    text = decoded(data)
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _LEAST_SECRET:
            text = text.replace(secret, "[redacted]")
    return text


def verdict_lines(decisions: Iterable[OfferedDecision], withheld: Mapping[str, int]) -> Iterator[str]:
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
            told.append(f"{withheld[server]} withheld, see `portbook scan`")
        yield f"{server}: {'; '.join(told) or 'nothing is approved'}"
    yield 'To allow only calls that read, put this line below [policy] in the settings: effects = ["read"]'


def _names(decisions: list[OfferedDecision], action: Action) -> str:
    names = [each.name.partition(".")[2] for each in decisions if each.action is action]
    shown = ", ".join(map(escaped, names[:4]))
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"
