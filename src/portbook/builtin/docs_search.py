"""The tool `docs.search`: full-text search in a folder of text and Markdown files, best matches first.

The index is in memory and follows the folder: a search first updates it with changed, added and removed
files, if the last update is long enough ago. The same files and query always give the same bytes. A query
consists of words, it has no syntax. One search runs at a time; thread-safe.
"""

from __future__ import annotations

import heapq
import math
import re
import threading
import time
from collections.abc import Callable, Container
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from portbook.builtin.docs_folder import Stamp, text_files
from portbook.builtin.docs_sections import cut
from portbook.model import JSON, JSONObject
from portbook.tools.spec import Effect, ToolSpec

if TYPE_CHECKING:
    import apsw

    from portbook.tools.contract_registry import Bundle

__all__ = ["Tokens", "docs_search_tool", "snippet"]

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
