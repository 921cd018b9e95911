from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.builtin.docs_search import MAX_FILE_BYTES, Section, cut, docs_search_tool
from portbook.tools.contract_registry import SchemaRegistry
from portbook.tools.spec import Effect, ToolSpec

REGISTRY = SchemaRegistry()
BUNDLE = REGISTRY.bundles()["docs.search"]
IO = REGISTRY.load_tool_io("docs.search")

PAGES = {
    "guide.md": "Welcome.\n\n# Install\nInstall the server by pip.\n\n## Upgrade\nUpgrading takes a backup.",
    "ops/backup.md": "# Backups\nA backup is made every night by the server.\n",
    "ops/notes.txt": "The night shift restarts the server. Café, naïve, 東京.\n",
}


@dataclass
class Watch:
    """A clock that goes when it is told to."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def write(folder: Path, pages: dict[str, str]) -> Path:
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def tool_for(folder: Path, tick: Callable[[], float] | None = None) -> ToolSpec:
    return docs_search_tool(BUNDLE, folder, tick=tick or Watch())


def search(tool: ToolSpec, query: str, **more: Any) -> dict[str, Any]:
    arguments = {"query": query, **more}
    IO.input.validate(arguments)
    result: Any = tool.function(arguments)
    IO.output.validate(result)
    order = [(-hit["score"], hit["id"]) for hit in result["hits"]]
    assert order == sorted(order)
    assert all(hit["score"] == round(hit["score"], 6) for hit in result["hits"])
    assert [hit["rank"] for hit in result["hits"]] == [*range(1, len(order) + 1)]
    assert len(order) == min(result["total"], int(more.get("topK", 5)))
    return result


def ids(result: dict[str, Any]) -> list[str]:
    return [hit["id"] for hit in result["hits"]]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> ToolSpec:
    return tool_for(write(tmp_path_factory.mktemp("pages"), PAGES))


def test_the_tool_is_what_its_bundle_says_and_runs_in_a_worker(pages: ToolSpec) -> None:
    assert (pages.name, pages.description) == ("docs.search", BUNDLE.description)
    assert (pages.input_schema, pages.output_schema) == (BUNDLE.input, BUNDLE.output)
    assert (pages.effect, pages.is_async, pages.is_inline, pages.timeout_ms) == (
        Effect.READ,
        False,
        False,
        None,
    )


def test_a_hit_names_its_section_and_shows_the_words_around_the_match(pages: ToolSpec) -> None:
    result = search(pages, "pip")
    [hit] = result.pop("hits")
    assert result == {"query": "pip", "total": 1}
    assert hit.pop("score") > 0
    assert hit == {
        "id": "guide.md#install",
        "rank": 1,
        "document": {
            "title": "Install",
            "snippet": "Install the server by pip.",
            "sourcePath": "guide.md",
        },
    }


FINDS = [
    ("another form of the word", "upgrades", ["guide.md#upgrade"]),
    ("capitals", "PIP", ["guide.md#install"]),
    ("no accents", "cafe naive", ["ops/notes.txt"]),
    ("accents too many", "nïght shift", ["ops/notes.txt", "ops/backup.md#backups"]),
    ("another script", "東京", ["ops/notes.txt"]),
    ("the part before the first heading, by the file's title", "welcome", ["guide.md"]),
    ("all words before some", "night backup", ["ops/backup.md#backups", "guide.md#upgrade", "ops/notes.txt"]),
    ("the same word twice", "backup backups", ["ops/backup.md#backups", "guide.md#upgrade"]),
    ("a word that is nowhere beside one that is", "pip zebra", ["guide.md#install"]),
    ("a word that is nowhere", "zebra", []),
    ("no word", "?!", []),
    ("operators are words", "pip NOT zebra", ["guide.md#install"]),
    ("NEAR is a word", "NEAR(pip zebra, 5)", ["guide.md#install"]),
    ("a column filter is words", "body:pip", ["guide.md#install"]),
    ("a prefix query is a word", "pi*", []),
    ("a quotation is words", '"pip zebra"', ["guide.md#install"]),
    ("an open quotation is words", '"pip', ["guide.md#install"]),
    ("parentheses, carets and pluses", "^(pip) + -", ["guide.md#install"]),
    ("NUL", "zebra\0pip", ["guide.md#install"]),
    ("emoji", "😀 pip 👩‍💻", ["guide.md#install"]),
    ("a lone surrogate", "\ud800 pip", ["guide.md#install"]),
    ("SQL", "'; DROP TABLE sections; -- pip", ["guide.md#install"]),
]


@pytest.mark.parametrize(("query", "expected"), [case[1:] for case in FINDS], ids=[case[0] for case in FINDS])
def test_a_query_is_words_and_finds_sections(pages: ToolSpec, query: str, expected: list[str]) -> None:
    result: Any = pages.function({"query": query})
    assert (ids(result), result["total"], result["query"]) == (expected, len(expected), query)


LONG_QUERIES = ["x" * 1000, "pip " * 250, " ".join(map(str, range(258))), '"' * 1000, "(" * 1000, "a " * 500]


@pytest.mark.parametrize("query", LONG_QUERIES, ids=range(len(LONG_QUERIES)))
def test_the_longest_query_is_answered(pages: ToolSpec, query: str) -> None:
    search(pages, query)


SYNTAX = ["pip", "server", "AND", "OR", "NOT", "NEAR(", '"', "*", "^", ":", "\0", "é"]


@given(
    st.text(min_size=1, max_size=1000) | st.lists(st.sampled_from(SYNTAX), min_size=1).map(" ".join),
    st.integers(1, 100),
)
def test_any_query_gives_what_the_output_schema_allows(pages: ToolSpec, query: str, top_k: int) -> None:
    assert search(pages, query, topK=top_k)["query"] == query


def test_without_top_k_there_are_five_hits_and_the_total_counts_all(tmp_path: Path) -> None:
    tool = tool_for(write(tmp_path, {f"{number}.txt": "word" for number in range(8)}))
    assert (len(search(tool, "word")["hits"]), search(tool, "word")["total"]) == (5, 8)
    assert search(tool, "word", topK=7.0) == search(tool, "word", topK=7)
    assert len(search(tool, "word", topK=100)["hits"]) == 8


def test_equal_scores_are_ordered_by_id(tmp_path: Path) -> None:
    tool = tool_for(write(tmp_path, dict.fromkeys(("c.txt", "a/z.txt", "b.txt"), "same text")))
    result = search(tool, "text")
    assert ids(result) == ["a/z.txt", "b.txt", "c.txt"]
    assert len({hit["score"] for hit in result["hits"]}) == 1


def test_a_word_in_the_title_outweighs_the_same_word_in_the_text(tmp_path: Path) -> None:
    tool = tool_for(
        write(tmp_path, {"a.md": "# Other\nabout audit only", "b.md": "# Audit\nabout other only"})
    )
    assert ids(search(tool, "audit")) == ["b.md#audit", "a.md#other"]


def test_words_that_every_section_has_still_rank(tmp_path: Path) -> None:
    tool = tool_for(write(tmp_path, {"a.txt": "tool and more words", "b.txt": "tool tool tool words"}))
    first, second = search(tool, "tool")["hits"]
    assert first["id"] == "b.txt"
    assert first["score"] > second["score"] > 0.01


def test_a_section_with_all_words_comes_first_even_if_another_has_one_of_them_often(tmp_path: Path) -> None:
    filler = "filler " * 500
    texts = {"all.txt": f"{filler} rare {filler} common", "some.md": "# Rare\n" + "rare " * 50}
    tool = tool_for(write(tmp_path, {**texts, **{f"{number}.txt": "common" for number in range(5)}}))
    result = search(tool, "rare common", topK=2)
    assert ids(result) == ["all.txt", "some.md#rare"]
    assert result["total"] == 7


def test_a_heading_without_text_shows_itself(tmp_path: Path) -> None:
    tool = tool_for(write(tmp_path, {"a.md": "# Lonely heading\n# Next"}))
    assert search(tool, "lonely")["hits"][0]["document"]["snippet"] == "Lonely heading"


def test_a_large_file_full_of_matches_is_searched(tmp_path: Path) -> None:
    """FTS5's own snippet() would take minutes here."""
    tool = tool_for(write(tmp_path, {"a.txt": ("the cat sat\n" * 90_000)[:MAX_FILE_BYTES]}))
    assert search(tool, "the cat")["hits"][0]["document"]["snippet"].startswith("the cat sat the cat sat")


def test_a_missing_folder_has_nothing_and_is_searched_once_it_is_there(tmp_path: Path) -> None:
    watch = Watch()
    tool = tool_for(tmp_path / "later", watch)
    assert search(tool, "server")["total"] == 0
    write(tmp_path / "later", PAGES)
    watch.now += 2
    assert search(tool, "server")["total"] == 3


def test_a_look_at_the_folder_is_good_for_two_seconds(tmp_path: Path) -> None:
    watch = Watch()
    tool = tool_for(write(tmp_path, {"a.md": "# A\nold"}), watch)
    assert search(tool, "old new")["total"] == 1
    write(tmp_path, {"b.md": "# B\nnew"})
    watch.now += 1.9
    assert search(tool, "old new")["total"] == 1
    watch.now += 0.1
    assert search(tool, "old new")["total"] == 2


def test_an_index_that_followed_its_folder_answers_like_a_new_one(tmp_path: Path) -> None:
    watch = Watch()
    tool = tool_for(write(tmp_path, {**PAGES, "gone.md": "# Gone\nserver night backup"}), watch)
    search(tool, "server")
    (tmp_path / "gone.md").unlink()
    write(
        tmp_path,
        {"new.md": "# New\nserver", "guide.md": "# Install\nThe server, with pipx.\n# More\nbackup\n"},
    )
    watch.now += 2
    for query in ("server", "night backup", "pip", "pipx", "gone"):
        assert json.dumps(search(tool, query)) == json.dumps(search(tool_for(tmp_path), query))
    assert ids(search(tool, "pipx")) == ["guide.md#install"]
    assert ids(search(tool, "gone")) == []


def test_a_file_with_the_same_time_and_size_is_not_read_again(tmp_path: Path) -> None:
    watch = Watch()
    tool = tool_for(write(tmp_path, {"a.txt": "first"}), watch)
    path = tmp_path / "a.txt"
    search(tool, "first")
    before = path.stat()
    path.write_text("other", encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    watch.now += 2
    assert search(tool, "first")["total"] == 1
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    watch.now += 2
    assert (search(tool, "first")["total"], search(tool, "other")["total"]) == (0, 1)


def test_a_look_that_fails_changes_nothing_and_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch()
    tool = tool_for(write(tmp_path, {"a.txt": "first"}), watch)

    def fail(path: str, text: str) -> None:
        raise MemoryError(path, text)

    def search_without_memory() -> None:
        with monkeypatch.context() as patch:
            patch.setattr("portbook.builtin.docs_search.cut", fail)
            search(tool, "first")

    with pytest.raises(MemoryError):
        search_without_memory()
    assert search(tool, "first")["total"] == 1
    write(tmp_path, {"a.txt": "longer than first", "b.txt": "first again"})
    watch.now += 2
    with pytest.raises(MemoryError):
        search_without_memory()
    assert search(tool, "first")["total"] == 2


def test_many_threads_that_search_a_changing_folder_all_get_their_answer(tmp_path: Path) -> None:
    watch = Watch()
    tool = tool_for(write(tmp_path, PAGES), watch)

    def write_and_search(number: int) -> int:
        write(tmp_path, {f"more/{number}.md": f"# Page {number}\nunique{number}"})
        watch.now += 2
        return search(tool, "server")["total"]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write_and_search, range(64))) == [3] * 64
    watch.now += 2
    assert [search(tool, f"unique{number}")["total"] for number in range(64)] == [1] * 64


def test_importing_the_tool_imports_neither_the_database_nor_the_validator() -> None:
    script = (
        "import sys, portbook.builtin.docs_search;"
        "print([name for name in ('apsw', 'jsonschema_rs', 'pydantic', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]", done.stderr


def sections(path: str, text: str) -> list[tuple[str, str, str]]:
    return [tuple(section) for section in cut(path, text)]


CASES = [
    (
        "headings of all levels",
        "a/b.md",
        "# One\nfirst\n\n###### Six ##\nlast\n",
        [("a/b.md#one", "One", "first"), ("a/b.md#six", "Six", "last")],
    ),
    (
        "text before the first heading",
        "a.md",
        "before\n\n# Title\nafter",
        [("a.md", "Title", "before"), ("a.md#title", "Title", "after")],
    ),
    ("no heading", "notes/a.markdown", "only text", [("notes/a.markdown", "a", "only text")]),
    ("a heading and nothing else", "a.md", "# Title", [("a.md#title", "Title", "")]),
    (
        "equal headings",
        "a.md",
        "# A\n# A\n# A-2\n# A",
        [("a.md#a", "A", ""), ("a.md#a-2", "A", ""), ("a.md#a-2-2", "A-2", ""), ("a.md#a-3", "A", "")],
    ),
    (
        "headings without letters",
        "a.md",
        "#\n# !?\n# Grüße, 世界!",
        [("a.md#section", "!?", ""), ("a.md#section-2", "!?", ""), ("a.md#grüße-世界", "Grüße, 世界!", "")],
    ),
    ("a blank heading", "a.md", "#  \nx", [("a.md#section", "a", "x")]),
    ("a blank heading in plain text", "a.txt", "# \n# B", [("a.txt", "B", "# \n# B")]),
    ("no space after the hash", "a.md", "#no\n#5 bolt", [("a.md", "a", "#no\n#5 bolt")]),
    ("seven hashes", "a.md", "####### no", [("a.md", "a", "####### no")]),
    ("indented by four", "a.md", "text\n\n    # no", [("a.md", "a", "text\n\n    # no")]),
    ("indented by three", "a.md", "   # Yes", [("a.md#yes", "Yes", "")]),
    ("hashes that close nothing", "a.md", "# C# and F#", [("a.md#c-and-f", "C# and F#", "")]),
    (
        "fenced code",
        "a.md",
        "# A\n```sh\n# no\n```\n# B",
        [("a.md#a", "A", "```sh\n# no\n```"), ("a.md#b", "B", "")],
    ),
    (
        "a fence of tildes",
        "a.md",
        "~~~\n# no\n```\n# no\n~~~\n# A",
        [("a.md", "A", "~~~\n# no\n```\n# no\n~~~"), ("a.md#a", "A", "")],
    ),
    ("a longer fence", "a.md", "````\n```\n# no\n````", [("a.md", "a", "````\n```\n# no\n````")]),
    ("words after a closing fence", "a.md", "```\n``` x\n# no", [("a.md", "a", "```\n``` x\n# no")]),
    ("a closing fence indented by four", "a.md", "```\n    ```\n# no", [("a.md", "a", "```\n    ```\n# no")]),
    ("a fence without an end", "a.md", "```\n# no", [("a.md", "a", "```\n# no")]),
    (
        "a fence in a list",
        "a.md",
        "- ```\n  # no\n  ```\n# A",
        [("a.md", "A", "- ```\n  # no\n  ```"), ("a.md#a", "A", "")],
    ),
    (
        "a fence in a quotation",
        "a.md",
        "> ```\n> # no\n> ```\n# A",
        [("a.md", "A", "> ```\n> # no\n> ```"), ("a.md#a", "A", "")],
    ),
    (
        "code within a sentence",
        "a.md",
        "```x``` is code\n# A",
        [("a.md", "A", "```x``` is code"), ("a.md#a", "A", "")],
    ),
    (
        "line ends of Windows",
        "a.md",
        "# A\r\nx\r\n# B\r\ny\r\n",
        [("a.md#a", "A", "x"), ("a.md#b", "B", "y")],
    ),
    ("control characters", "a.md", "# A\x00B\nx\x1b[0m\x85y", [("a.md#a-b", "A B", "x [0m y")]),
    ("a suffix in capitals", "A.MD", "# A\nx", [("A.MD#a", "A", "x")]),
    ("plain text", "a/notes.txt", " some\ntext ", [("a/notes.txt", "notes", "some\ntext")]),
    ("plain text with a heading", "a.txt", "x\n# Title\ny", [("a.txt", "Title", "x\n# Title\ny")]),
    (
        "plain text with a line below its title",
        "a.txt",
        "Title\n=====\ny",
        [("a.txt", "Title", "Title\n=====\ny")],
    ),
    ("reStructuredText", "a.rst", "====\nTop!\n====\n\nx", [("a.rst", "Top!", "====\nTop!\n====\n\nx")]),
    ("code in reStructuredText", "a.rst", "# no\n\nTop\n---", [("a.rst", "Top", "# no\n\nTop\n---")]),
    ("a line too short to underline", "a.rst", "Long text\n---", [("a.rst", "a", "Long text\n---")]),
    ("two lines of dashes", "a.rst", "----\n----", [("a.rst", "a", "----\n----")]),
    ("blank Markdown", "a.md", " \n\n", []),
    ("blank text", "a.txt", " \n\n", []),
]


@pytest.mark.parametrize(
    ("path", "text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_document_is_cut_at_its_headings(
    path: str, text: str, expected: list[tuple[str, str, str]]
) -> None:
    assert sections(path, text) == expected


def test_an_endless_heading_gives_a_short_title_and_a_short_id() -> None:
    [section] = cut("a.md", "# " + "x" * 1_000_000)
    assert section == Section("a.md#" + "x" * 80, "x" * 199 + "…", "")


def test_a_hundred_thousand_equal_headings_each_get_their_own_id() -> None:
    found = [section.id for section in cut("a.md", "# a\n" * 100_000)]
    assert len(set(found)) == 100_000
    assert found[-1] == "a.md#a-100000"


HOSTILE_LINES = [
    ("list markers", "* " * 200_000),
    ("backticks", "`" * 400_000 + "x`"),
    ("hashes", "# " * 200_000 + "x"),
    ("spaces", "# " + " " * 400_000 + "x"),
    ("dashes", "-" * 400_000 + "\n" + "-" * 400_000 + "x"),
]


@pytest.mark.parametrize("line", [line for _, line in HOSTILE_LINES], ids=[name for name, _ in HOSTILE_LINES])
@pytest.mark.parametrize("suffix", ["md", "txt", "rst"])
def test_a_hostile_line_does_not_stop_the_cutting(line: str, suffix: str) -> None:
    """A pattern that backtracks would not come back for hours."""
    assert sections(f"a.{suffix}", line + "\n\nend")[-1][2].endswith("end")


@given(st.text(st.sampled_from("#`~->=ab \n\t\r\x00"), max_size=200), st.sampled_from(["md", "txt", "rst"]))
def test_ids_are_unique_and_titles_never_empty_whatever_the_text(text: str, suffix: str) -> None:
    found = list(cut(f"a.{suffix}", text))
    assert len({section.id for section in found}) == len(found)
    for section in found:
        assert section.title == " ".join(section.title.split()) != ""
        assert section.body == section.body.strip()
        assert "\0" not in section.body
