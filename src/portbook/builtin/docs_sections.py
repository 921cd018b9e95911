"""Splits documents into sections, the units that a search finds.

A Markdown file is split at its ATX headings (CommonMark 4.2), never inside fenced code. Any other text is one
section. Ids are unique within a file, and the same text always gives the same ids. Every step is linear in
the text. Pure: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from portbook.builtin.docs_folder import MARKDOWN

__all__ = ["Section", "cut"]

# A line that starts with '#' may have a megabyte. Longer titles and slugs are of no use.
_MAX_TITLE: Final = 200
_MAX_SLUG: Final = 80

_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t](.*))?")
_CLOSING = re.compile(r"(?:^|[ \t])#+[ \t]*$")

# A fence may be inside a list item or a quotation, so more than indentation can come before it. No backtick
# may follow on its line: that would be inline code (CommonMark 4.5).
_FENCE = re.compile(r"((?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*)(`{3,}(?=[^`]*$)|~{3,})(.*)")

# reStructuredText and many plain text files underline headings.
_UNDERLINED = re.compile(r"^(?=.*\w)(\S.*)\n(([=\-~^\"*+#])\3{2,})[ \t]*$", re.MULTILINE)

# Control characters except line breaks and tabs are not text, and some control terminals.
_NO_CONTROLS = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}


class Section(NamedTuple):
    """One section of a document."""

    id: str
    """`folder/file.md#slug`; only the path for a whole file and for text before the first heading."""
    title: str
    body: str
    """The text below the heading, without surrounding white space."""


def cut(path: str, text: str) -> Iterator[Section]:
    """Yield the sections of the file at the relative POSIX `path`; a blank file has none."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_NO_CONTROLS)
    name = PurePosixPath(path)
    if name.suffix.lower() in MARKDOWN:
        yield from _cut_markdown(path, name.stem, text)
    elif body := text.strip():
        yield Section(path, _plain_title(name, text) or _tidy(name.stem), body)


def _cut_markdown(path: str, stem: str, text: str) -> Iterator[Section]:
    lines = text.split("\n")
    headings = list(_headings(lines))
    main_title = next((title for _, title in headings if title), _tidy(stem))
    ends = [*(number for number, _ in headings), len(lines)]
    if preamble := _body(lines, 0, ends[0]):
        yield Section(path, main_title, preamble)
    slugs = _Slugs()
    for (number, title), end in zip(headings, ends[1:], strict=True):
        yield Section(f"{path}#{slugs.take(title)}", title or main_title, _body(lines, number + 1, end))


def _headings(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of every ATX heading outside of fenced code."""
    fence, indent = "", 0
    for number, line in enumerate(lines):
        found = _FENCE.fullmatch(line)
        if fence:
            # A closing fence is at least as long, has no text after it and is not indented by 4 or more.
            if found and found[2].startswith(fence) and not found[3].strip() and len(found[1]) < indent + 4:
                fence = ""
        elif found:
            fence, indent = found[2], len(found[1])
        elif heading := _HEADING.fullmatch(line):
            yield number, _tidy(_CLOSING.sub("", heading[1] or ""))


def _plain_title(name: PurePosixPath, text: str) -> str | None:
    # In reStructuredText, a line with '#' is a comment in a code sample.
    if name.suffix.lower() != ".rst":
        for _, title in _headings(text.split("\n")):
            if title:
                return title
    for found in _UNDERLINED.finditer(text):
        if len(found[2]) >= len(found[1].rstrip()):
            return _tidy(found[1])
    return None


def _body(lines: list[str], start: int, end: int) -> str:
    return "\n".join(lines[start:end]).strip()


def _tidy(title: str) -> str:
    title = " ".join(title.split())
    return title if len(title) <= _MAX_TITLE else title[: _MAX_TITLE - 1] + "…"


class _Slugs:
    """Assigns the headings of one file their slugs, like GitHub; a second `usage` is `usage-2`."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def take(self, title: str) -> str:
        """Return a slug that no earlier heading has."""
        slug = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")[:_MAX_SLUG] or "section"
        candidate = slug
        while candidate in self._taken:
            # Cached, so that a thousand equal headings do not try a thousand numbers each.
            self._numbers[slug] = self._numbers.get(slug, 1) + 1
            candidate = f"{slug}-{self._numbers[slug]}"
        self._taken.add(candidate)
        return candidate
