"""What the README and the docs show is what happens."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.page_terminal import Command, File, Terminal, matches, steps
from support.portbook_process import ROOT
from support.stand_in import portbook_program

README = ROOT / "README.md"
TO_FOLLOW = [ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/how-to").glob("*.md"))]
TO_READ = sorted({*(ROOT / "docs").rglob("*.md")} - {*TO_FOLLOW})
# An example that serves tools is run by test_examples.
EXAMPLES = [
    page for page in sorted(ROOT.glob("examples/*/README.md")) if not (page.parent / "calls.jsonl").is_file()
]
PAGES = [*TO_FOLLOW, *(page for page in TO_READ if "```console" in page.read_text("utf-8")), *EXAMPLES]


@pytest.fixture(scope="module")
def portbook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with portbook_program(tmp_path_factory.mktemp("bin")) as program:
        yield program


@pytest.fixture
def terminal(tmp_path: Path, portbook: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path, portbook)
    yield made
    made.close()


@pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: page.stem if page not in EXAMPLES else f"example-{page.parent.name}"
)
def test_a_page_shows_what_happens(page: Path, terminal: Terminal) -> None:
    if page in EXAMPLES:
        shutil.copytree(page.parent, terminal.folder, dirs_exist_ok=True)
    taken = list(steps(page))
    assert any(isinstance(step, Command) for step in taken), "a page to follow has something to run"
    for step in taken:
        terminal.do(step)


def test_the_readme_shows_what_happens_when_it_is_followed_and_followed_again(terminal: Terminal) -> None:
    # What a reader wrote the first time, the settings file too, is there for every command of the second.
    for step in [*steps(README)] * 2:
        terminal.do(step)


def test_each_command_of_the_readme_is_run_but_those_that_this_run_is_made_with() -> None:
    text = README.read_text("utf-8")
    unrun = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [re.findall(r"^[^#\s]\S*", block, re.MULTILINE) for block in unrun] == [
        ["scripts/serve", "scripts/test"]
    ]


def test_the_readme_shows_a_toolset_and_both_doors() -> None:
    taken = list(steps(README))
    lines = [step.line for step in taken if isinstance(step, Command)]
    files = [step.name for step in taken if isinstance(step, File)]
    assert files == ["my_tools.py", "portbook.toml", "v1.json", "v2.json", "song.json"]
    assert any("serve --stdio my_tools.py" in line for line in lines)
    assert any("serve --http my_tools.py" in line for line in lines)
    assert any(line.startswith("curl ") for line in lines)


@pytest.mark.parametrize(
    ("shown", "actual", "verdict"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a\n", "a\nb\n", False),
        ("", "a\n", False),
        ('{"ts":"…","n":1}\n', '{"ts":"now","n":1}\n', True),
        ('{"ts":"…","n":1}\n', '{"ts":"now","n":2}\n', False),
        ("a…\n", "a\nb\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("a\n…\nd\n", "a\nb\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_an_ellipsis_is_the_only_thing_that_matches_anything(shown: str, actual: str, verdict: bool) -> None:
    assert matches(shown, actual) is verdict
