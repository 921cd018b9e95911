"""The difference of a file that `portbook adopt` changes, as `patch` reads it. Pure: no I/O.

It is exact but for secrets, which are masked: a line with one cannot be applied.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterator
from typing import Final

import click

from portbook.adopt.client_document import decoded
from portbook.adopt.file_change import FileChange
from portbook.escaping import escaped_lines

__all__ = ["difference", "masked", "shown_lines"]

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
