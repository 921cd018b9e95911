"""Mistakes that people make in settings and toolsets: each is told with its place and what to do."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from portbook.app.assemble import assemble
from portbook.audit.memory_sink import NoSink
from portbook.settings import BadSettings, load_settings
from portbook.tools.spec import BadTool
from support.portbook_process import run

HERE = Path(__file__).parent
TOOLS = '''\
from portbook import Toolset

toolset = Toolset("greetings")


@toolset.tool(effect="read")
def greet(name: str, times: int = 1) -> list[str]:
    """Say hello."""
    return [name] * times
'''
API = {
    "openapi": "3.1.0",
    "info": {"title": "pets", "version": "1"},
    "servers": [{"url": "https://api.example.com"}],
    "paths": {"/pets": {"get": {"operationId": "list_pets", "responses": {"200": {"description": "pets"}}}}},
}
NAMES_A_TOOLSET = '[python]\ntoolsets = ["mine.py"]\n'


def mistakes(file: str) -> list[Any]:
    rows = tomllib.loads((HERE / file).read_text("utf-8"))["mistake"]
    return [pytest.param(row["text"], row["says"], id=row["name"]) for row in rows]


SETTINGS = mistakes("mistakes_in_settings.toml")
TOOLSETS = mistakes("mistakes_in_toolsets.toml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "api.json").write_text(json.dumps(API))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(folder: Path, settings: str) -> str:
    """What a start is refused with, without the folder and without the place of Portbook itself."""
    (folder / "portbook.toml").write_text(settings)
    with pytest.raises((BadSettings, BadTool)) as raised:
        start(folder)
    return re.sub(r" \(/[^)]*\)", "", str(raised.value).replace(f"{folder}/", ""))


def start(folder: Path) -> None:
    settings = load_settings(None, {}, {}, folder)._replace(more_toolsets=("tools.py",))
    assemble(settings, is_exposed=False, sink=NoSink(), environ={})


def test_there_are_enough_of_them_and_each_says_what_to_do() -> None:
    assert len(SETTINGS) >= 60
    assert len(TOOLSETS) >= 20
    for text, says in (row.values for row in (*SETTINGS, *TOOLSETS)):
        place, _, rest = says.partition(": ")
        assert re.fullmatch(r"(portbook\.toml|mine\.py):\d+:\d+", place), says
        assert int(place.split(":")[1]) <= text.count("\n") + 1, says
        advice = r"; |must |needs |did you mean|use |written as |: do not|expected |is expected |can be no "
        assert re.search(advice, rest), says


@pytest.mark.parametrize(("text", "says"), SETTINGS)
def test_a_mistake_in_the_settings_is_told_with_its_place(text: str, says: str, folder: Path) -> None:
    assert refusal(folder, text) == says


@pytest.mark.parametrize(("text", "says"), TOOLSETS)
def test_a_mistake_in_a_toolset_is_told_with_its_place(text: str, says: str, folder: Path) -> None:
    (folder / "mine.py").write_text(text)
    assert refusal(folder, NAMES_A_TOOLSET) == says


def test_every_verb_begins_with_the_place(folder: Path) -> None:
    (folder / "portbook.toml").write_text('[server]\nprot = 1\n[python]\ntoolsets = ["nowhere.py"]\n')
    says = "portbook.toml:2:1: unknown setting 'server.prot'; did you mean server.port?"
    for verb in (
        ["serve", "--stdio"],
        ["tools"],
        ["explain", "greet"],
        ["call", "greet"],
        ["approvals", "list"],
    ):
        finished = run(*verb, cwd=folder)
        assert (finished.code, finished.err) == (2, f"portbook: error: {says}\n"), verb


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("name: say-hello", "SKILL.md:1:1: its frontmatter needs a description"),
        ("description: x\nname: other", "SKILL.md:3:1: its name must be that of its folder"),
        ("name: say-hello\ndescription: >\n  x", "SKILL.md:3:1: put quotes around this value"),
    ],
)
def test_a_mistake_in_a_skill_is_told_with_its_line(head: str, says: str, folder: Path) -> None:
    (folder / "skills" / "say-hello").mkdir(parents=True)
    (folder / "skills" / "say-hello" / "SKILL.md").write_text(f"---\n{head}\n---\n")
    (folder / "mine.py").write_text(
        'from portbook import Toolset\n\ntoolset = Toolset("x")\ntoolset.skills("skills")\n'
    )
    assert refusal(folder, NAMES_A_TOOLSET).startswith(f"skills/say-hello/{says}")
    place = says.partition(": ")[0]
    assert f"skills/say-hello/{place}: error: " in run("check", "mine.py", cwd=folder).out.decode()
