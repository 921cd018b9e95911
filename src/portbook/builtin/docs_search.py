"""The tool `docs.search`: full-text search in a folder of text and Markdown files, best matches first.

The index is in memory and follows the folder: a search first updates it with changed, added and removed
files, if the last update is long enough ago. The same files and query always give the same bytes. A query
consists of words, it has no syntax. One search runs at a time; thread-safe.
"""

from __future__ import annotations

import contextlib
import heapq
import math
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from portbook.model import JSON, JSONObject
from portbook.tools.spec import Effect, ToolSpec

if TYPE_CHECKING:
    import apsw

    from portbook.tools.contract_registry import Bundle

__all__ = ["MAX_FILE_BYTES", "Section", "cut", "docs_search_tool", "snippet", "text_files"]

# Selects an excerpt of a section that shows why it was found.
#
# A snippet is plain text on one line, truncated between words where possible, with ellipses where it was
# truncated. FTS5's own function for this is quadratic in the number of matches: minutes for one large file.
# This one is linear.

Tokens: TypeAlias = "Callable[[bytes], list[tuple[int, int, str]]]"
"""Returns the words of a UTF-8 text: the start and end of each, in bytes, and its stem."""

# Two or three lines of a terminal; a quarter of it comes before the match.
_MAX_CHARS: Final = 240
_LEAD_CHARS: Final = _MAX_CHARS // 4

# A body is searched in pieces that end between words, up to the first piece with a match.
_PIECE = re.compile(r".{1,16384}(?!\S)|.{1,16384}", re.DOTALL)


def snippet(body: str, stems: Container[str], tokens: Tokens) -> str:
    """Return the part of `body` where most of `stems` are close together; its start if it has none."""
    for piece in _PIECE.finditer(body):
        raw = piece[0].encode()
        place = _place(raw, stems, tokens)
        if place is not None:
            return _excerpt(body, piece.start() + len(raw[:place].decode()))
    return _excerpt(body, 0)


def _place(raw: bytes, stems: Container[str], tokens: Tokens) -> int | None:
    most, place = 0, None
    last: dict[str, int] = {}
    for start, _, stem in tokens(raw):
        if stem in stems:
            last[stem] = start
            near = [at for at in last.values() if start - at < _MAX_CHARS - _LEAD_CHARS]
            if len(near) > most:
                most, place = len(near), min(near)
    return place


def _excerpt(body: str, place: int) -> str:
    # Four times as much as needed, because runs of white space are collapsed.
    first, last = max(0, place - 4 * _MAX_CHARS), place + 4 * _MAX_CHARS
    # A mark at the place lets white space around it collapse too; no section contains a NUL.
    before, _, after = " ".join(f"{body[first:place]}\0{body[place:last]}".split()).partition("\0")
    line, at, room = before + after, len(before), _MAX_CHARS - len("……")
    start = max(0, min(at - _LEAD_CHARS, len(line) - room))
    if start:
        start = line.find(" ", start, at) + 1 or start
    end = start + room
    if end < len(line):
        end = line.rfind(" ", at, end + 1) if " " in line[at : end + 1] else end
    lead = "…" if first or start else ""
    tail = "…" if last < len(body) or end < len(line) else ""
    return lead + line[start:end] + tail


_DEFAULT_TOP_K: Final = 5

# Long enough for a burst of searches to share one update, short enough to go unnoticed.
_UPDATE_INTERVAL_S: Final = 2.0

_TOKENIZER: Final[list[str]] = ["porter", "unicode61", "remove_diacritics", "2"]
_CREATE: Final = (
    "CREATE VIRTUAL TABLE sections USING fts5"
    f"(id UNINDEXED, path UNINDEXED, title, body, tokenize = '{' '.join(_TOKENIZER)}')"
)
# A word in a title counts five times as much as one in the text.
_FIND: Final = "SELECT rowid, id, -bm25(sections, 0, 0, 5, 1) FROM sections(?)"
_FETCH: Final = "SELECT path, title, body FROM sections WHERE rowid = ?"
_INSERT: Final = "INSERT INTO sections (rowid, id, path, title, body) VALUES (?, ?, ?, ?, ?)"
_DELETE: Final = "DELETE FROM sections WHERE rowid = ?"


def docs_search_tool(bundle: Bundle, folder: Path, *, tick: Callable[[], float] = time.monotonic) -> ToolSpec:
    """Return the tool that searches `folder`; no file is read before its first call."""
    index = _Index(folder, tick)

    def search(arguments: JSONObject) -> JSONObject:
        # 5.0 is an integer to JSON Schema.
        top_k = int(cast("float", arguments.get("topK", _DEFAULT_TOP_K)))
        return index.search(cast("str", arguments["query"]), top_k)

    return ToolSpec(
        name=bundle.tool,
        description=bundle.description or "Search a folder of text and Markdown files, best matches first.",
        input_schema=bundle.input,
        output_schema=bundle.output,
        effect=Effect.READ,
        function=search,
    )


class _Indexed(NamedTuple):
    """An indexed file."""

    stamp: Stamp
    rows: range


class _Match(NamedTuple):
    """A section that contains a word of the query. Matches sort from best to worst."""

    lacks_words: bool
    cost: float
    """The score, negated."""
    id: str
    row: int


class _Index:
    """The indexed sections of one folder. One lock guards everything."""

    def __init__(self, folder: Path, tick: Callable[[], float]) -> None:
        self._folder = folder
        self._tick = tick
        self._lock = threading.Lock()
        self._last_update: float | None = None
        self._files: dict[str, _Indexed] = {}
        self._next_row = 1

    def search(self, query: str, top_k: int) -> JSONObject:
        """Return the `top_k` best sections, in the form of the output schema."""
        with self._lock:
            if self._last_update is None or self._tick() - self._last_update >= _UPDATE_INTERVAL_S:
                self._update()
                # Read again, so that there is a pause even where an update takes longer than the pause.
                self._last_update = self._tick()
            words = self._words(query)
            matches = self._matches(list(words.values()))
            best = heapq.nsmallest(top_k, matches)
            hits: list[JSON] = [self._hit(rank, match, words) for rank, match in enumerate(best, 1)]
        return {"query": query, "total": len(matches), "hits": hits}

    @cached_property
    def _database(self) -> apsw.Connection:
        import apsw  # late: only needed for a search

        return apsw.Connection(":memory:")

    @cached_property
    def _tokens(self) -> Tokens:
        import apsw

        tokenize = self._database.fts5_tokenizer(_TOKENIZER[0], _TOKENIZER[1:])
        return lambda raw: cast(
            "list[tuple[int, int, str]]",
            tokenize(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False),
        )

    def _sql(self, statement: str, *values: str | int) -> list[tuple[Any, ...]]:
        # apsw's stubs use a type of Python 3.12 that 3.11 does not have.
        cursor: Any = self._database.execute(statement, values)  # pyright: ignore[reportUnknownMemberType]
        return cursor.fetchall()

    def _update(self) -> None:
        """Update the index from the folder: completely or, on an error, not at all."""
        files: dict[str, _Indexed] = {}
        with self._database:
            if self._last_update is None:
                self._sql(_CREATE)
            for file in text_files(self._folder):
                known = self._files.get(file.path)
                if known is not None and known.stamp == file.stamp:
                    files[file.path] = known
                elif (text := file.read()) is not None:
                    files[file.path] = _Indexed(file.stamp, self._insert(file.path, text))
            for path, known in self._files.items():
                if files.get(path) != known:
                    for row in known.rows:
                        self._sql(_DELETE, row)
        self._files = files

    def _insert(self, path: str, text: str) -> range:
        sections = list(cut(path, text))
        rows = range(self._next_row, self._next_row + len(sections))
        self._next_row = rows.stop
        for row, section in zip(rows, sections, strict=True):
            self._sql(_INSERT, row, section.id, path, section.title, section.body)
        return rows

    def _words(self, query: str) -> dict[str, str]:
        """Return the words of the query as written, by their stems."""
        raw = query.encode("utf-8", "replace")
        return {stem: raw[start:end].decode() for start, end, stem in self._tokens(raw)}

    def _matches(self, words: list[str]) -> list[_Match]:
        """Return the sections that contain any of the words, unordered.

        A section's score is the sum of its words' BM25. To a section with all words, the best score of the
        sections without all words is added, so that scores descend in the order of the hits.
        """
        sections = sum(len(file.rows) for file in self._files.values())
        found: dict[int, tuple[str, float, int]] = {}
        # Word by word, because a query may have more words than FTS5 allows in one expression.
        for word in words:
            rows = self._sql(_FIND, f'"{word}"')
            factor = _rarity_factor(sections, len(rows))
            for row, identifier, score in rows:
                _, before, count = found.get(row, ("", 0.0, 0))
                found[row] = (identifier, before + score * factor, count + 1)
        lift = max((score for _, score, count in found.values() if count < len(words)), default=0.0)
        return [
            _Match(True, -round(score, 6), identifier, row)
            if count < len(words)
            else _Match(False, -round(score + lift, 6), identifier, row)
            for row, (identifier, score, count) in found.items()
        ]

    def _hit(self, rank: int, match: _Match, words: dict[str, str]) -> JSONObject:
        [(path, title, body)] = self._sql(_FETCH, match.row)
        text = snippet(body, words, self._tokens) or title
        document: JSONObject = {"title": title, "snippet": text, "sourcePath": path}
        return {"id": match.id, "score": -match.cost, "rank": rank, "document": document}


def _rarity_factor(sections: int, matches: int) -> float:
    """Return the factor that corrects FTS5's weight of a word for frequent words.

    FTS5 gives every word that occurs in at least half of the sections the same weight, a millionth; in a
    small folder those are most words. Lucene's formula has `1 +` in the logarithm and stays above zero.
    """
    odds = (sections - matches + 0.5) / (matches + 0.5)
    return math.log(1 + odds) / (math.log(odds) if odds > 1 else 1e-6)


# Splits documents into sections, the units that a search finds.
#
# A Markdown file is split at its ATX headings (CommonMark 4.2), never inside fenced code. Any other text is
# one section. Ids are unique within a file, and the same text always gives the same ids. Every step is
# linear in the text.


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


# Finds and reads the text files of a folder, without ever leaving it.
#
# Only regular files are opened. Symbolic links are not followed, not even one that replaces a file or a
# folder during the walk: each step is opened relative to its open parent folder. The order is always the
# same. Files that cannot be read, or no longer exist, are left out without an error.


# The files that the search of documents reads.

MARKDOWN: Final = (".md", ".markdown")

SUFFIXES: Final = (*MARKDOWN, ".txt", ".rst")
"""The supported file extensions, in lower case."""

# Documentation pages are far smaller. A larger file is a log or a data set, not for an index in memory.
MAX_FILE_BYTES: Final = 1 << 20

# Checking this many takes about a tenth of a second, which a search may have to wait for.
MAX_FILES: Final = 10_000

# The walk keeps one descriptor open per level; documentation is never nested this deep.
_MAX_DEPTH: Final = 64

# Opening must not block if the file was replaced by a named pipe without a writer.
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK

# A name that is not UTF-8 reaches Python with lone surrogates, which JSON cannot hold.
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Stamp(NamedTuple):
    """Attributes of a file that change when it is written to."""

    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file that was found. It can be read until the walk continues."""

    path: str
    """Relative to the folder, with slashes."""
    stamp: Stamp
    name: str
    directory: int
    """The descriptor of the file's folder."""

    def read(self) -> str | None:
        """Return the text, with U+FFFD for bytes that are not UTF-8, or None where it cannot be read."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self.name, _OPEN_FLAGS, dir_fd=self.directory)
            try:
                if _is_wanted(os.fstat(descriptor)):
                    with open(descriptor, "rb", closefd=False) as file:
                        return file.read(MAX_FILE_BYTES).decode("utf-8-sig", "replace")
            finally:
                os.close(descriptor)
        return None


def text_files(folder: Path) -> Iterator[TextFile]:
    """Yield the visible text files below `folder`, which may be a link; none where it is missing."""
    left = MAX_FILES
    # Python before 3.13 raises RuntimeError for a link to itself.
    with contextlib.suppress(OSError, RuntimeError):
        top = folder.resolve(strict=True)
        for where, folders, names, directory in os.fwalk(top):
            below = PurePath(where).relative_to(top)
            folders[:] = sorted(filter(_is_visible, folders)) if len(below.parts) < _MAX_DEPTH else []
            prefix = f"{below.as_posix()}/" if below.parts else ""
            for name in sorted(filter(_is_visible, names)):
                if not (file := _look(prefix, name, directory)):
                    continue
                yield file
                left -= 1
                if not left:
                    return


def _look(prefix: str, name: str, directory: int) -> TextFile | None:
    if name.lower().endswith(SUFFIXES):
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if _is_wanted(status):
                return TextFile(prefix + name, Stamp(status.st_mtime_ns, status.st_size), name, directory)
    return None


def _is_visible(name: str) -> bool:
    return not name.startswith(".") and not _SURROGATE.search(name)


def _is_wanted(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES
