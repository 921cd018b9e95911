"""A server that changes a definition: every kind of change under every setting, whenever it is noticed.

Each server has two tools. One of them changes, and all that is new about it has a canary in it: where the
change is withheld, the canary must not reach the client. The other tool is always served.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from portbook.pins.on_change import Grade, Reaction
from support.counts import COUNTS, count
from support.portbook_process import TESTS, run
from support.stdio_session import StdioSession, stdio_session

SERVER = TESTS / "support" / "changing_server.py"
TEXT: dict[str, Any] = {"type": "string"}
Case = tuple[str, str]
CASES: list[Case] = [(grade.value, reaction.value) for grade, reaction in product(Grade, Reaction)]


def taking(*names: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, TEXT), **more}


def a_tool(name: str = "t", **changes: Any) -> dict[str, Any]:
    reads = {"readOnlyHint": True}
    return {
        "name": name,
        "description": "As approved.",
        "inputSchema": taking("a", "b"),
        "annotations": reads,
        **changes,
    }


def after(grade: str, canary: str) -> list[dict[str, Any]]:
    """Return the tools of a server after a change of this grade."""
    new = f"Now read {canary}."
    changed: dict[str, list[dict[str, Any]]] = {
        "words": [a_tool(description=new)],
        "annotations": [
            a_tool(
                description=new, annotations={"readOnlyHint": True, "title": canary, "idempotentHint": True}
            )
        ],
        "added": [a_tool(), a_tool(canary, description=new)],
        "removed": [],
        "narrowed": [a_tool(description=new, inputSchema=taking("a"))],
        "widened": [a_tool(description=new, inputSchema=taking("a", "b", canary))],
        "breaking": [a_tool(description=new, inputSchema=taking("a", "b", canary, required=[canary]))],
    }
    return [*changed[grade], a_tool("u")]


class Scene(NamedTuple):
    """A folder with a server for each case, and a client."""

    folder: Path
    client: StdioSession
    cases: list[Case]


def alias_of(grade: str, reaction: str) -> str:
    return f"{grade}_{reaction}"


def canary_of(grade: str, reaction: str) -> str:
    return f"canary_{grade}_{reaction}"


def own(name: str, alias: str) -> str:
    """The name of a tool at its server: servers that share a name would shadow each other."""
    return f"{name}_{alias}" if name in ("t", "u") else name


def listed(alias: str, name: str) -> str:
    return f"{alias}__{own(name, alias)}"


def offer(folder: Path, alias: str, tools: list[dict[str, Any]]) -> None:
    tools = [{**tool, "name": own(tool["name"], alias)} for tool in tools]
    place = folder / alias
    place.mkdir(exist_ok=True)
    draft = place / "draft"
    draft.write_text(json.dumps({"tools": tools}))
    draft.replace(place / "definitions.json")


def change(folder: Path, cases: list[Case]) -> None:
    for grade, reaction in cases:
        offer(folder, alias_of(grade, reaction), after(grade, canary_of(grade, reaction)))


def make(folder: Path, cases: list[Case], start: str, *options: str) -> Path:
    """Write the settings and the lock, which has every definition as it was before."""
    tables: list[str] = []
    for grade, reaction in cases:
        alias = alias_of(grade, reaction)
        offer(folder, alias, [a_tool(), a_tool("u")])
        command = json.dumps([sys.executable, str(SERVER), alias, *options])
        on_change = f'{{ {grade} = "{reaction}" }}'
        tables.append(f'[mcp.{alias}]\ncommand = {command}\nstart = "{start}"\non_change = {on_change}\n')
    (folder / "portbook.toml").write_text("[docs]\nenabled = false\n" + "".join(tables))
    done = run("pin", cwd=folder)
    assert done.code == 0, done.err
    return folder


def notice_at_start(folder: Path, cases: list[Case]) -> Iterator[Scene]:
    make(folder, cases, "eager")
    change(folder, cases)
    with stdio_session(folder) as client:
        client.tools()
        yield Scene(folder, client, cases)


def notice_at_the_first_call(folder: Path, cases: list[Case]) -> Iterator[Scene]:
    make(folder, cases, "lazy")
    started = folder / alias_of(*cases[0]) / "starts"
    started.unlink(missing_ok=True)
    change(folder, cases)
    with stdio_session(folder) as client:
        assert len(client.tools()) == 2 * len(cases)
        assert b"canary" not in client.received
        assert not started.exists()
        for case in cases:
            client.call(listed(alias_of(*case), "u"))
        assert started.exists()
        yield Scene(folder, client, cases)


def notice_when_told(folder: Path, cases: list[Case]) -> Iterator[Scene]:
    make(folder, cases, "eager")
    with stdio_session(folder) as client:
        assert len(client.tools()) == 2 * len(cases)
        change(folder, cases)
        client.wait_until(lambda: shown(client) == expected(cases))
        yield Scene(folder, client, cases)


def notice_at_reconnect(folder: Path, cases: list[Case]) -> Iterator[Scene]:
    make(folder, cases, "eager", "silent")
    with stdio_session(folder) as client:
        assert len(client.tools()) == 2 * len(cases)
        change(folder, cases)
        assert len(client.tools()) == 2 * len(cases)
        for case in cases:
            client.call(listed(alias_of(*case), "u"), {"a": "end"})
        client.wait_until(lambda: shown(client) == expected(cases))
        yield Scene(folder, client, cases)


def shown(client: StdioSession) -> dict[str, bool]:
    """Return the names that are listed, and whether each has changed."""
    return {name: "canary" in json.dumps(tool) for name, tool in client.tools().items()}


def expected(cases: list[Case]) -> dict[str, bool]:
    """Return the names that are listed in the end, and whether each has changed."""
    names: dict[str, bool] = {}
    for grade, reaction in cases:
        alias = alias_of(grade, reaction)
        names[listed(alias, "u")] = False
        if grade == "added":
            names[listed(alias, "t")] = False
            if reaction == "accept":
                names[f"{alias}__{canary_of(grade, reaction)}"] = True
        elif reaction == "accept" and grade != "removed":
            names[listed(alias, "t")] = True
    return names


OCCASIONS: dict[str, Callable[[Path, list[Case]], Iterator[Scene]]] = {
    "start": notice_at_start,
    "first call": notice_at_the_first_call,
    "list_changed": notice_when_told,
    "reconnect": notice_at_reconnect,
}


def cases_on(occasion: str) -> list[Case]:
    """Return every case for the start, and as many as count for the other occasions.

    Of those, seven have each kind of change once; with every occasion a kind has the next setting.
    """
    if occasion == "start":
        return CASES
    turn = list(OCCASIONS).index(occasion)
    ordered = [CASES[3 * kind + (kind + turn + step) % 3] for step in range(3) for kind in range(len(Grade))]
    return ordered[: count("changes noticed late")]


TRIED = [(occasion, *case) for occasion in OCCASIONS for case in cases_on(occasion)]


class Scenes:
    """A scene of each occasion, made when it is first asked for."""

    def __init__(self, factory: pytest.TempPathFactory, stack: contextlib.ExitStack) -> None:
        self._factory = factory
        self._stack = stack
        self._asked: set[str] = set()
        self._made: dict[str, Scene] = {}

    def __getitem__(self, occasion: str) -> Scene:
        if occasion not in self._asked:
            self._asked.add(occasion)
            noticing = contextlib.contextmanager(OCCASIONS[occasion])
            made = noticing(self._factory.mktemp("changed"), cases_on(occasion))
            self._made[occasion] = self._stack.enter_context(made)
        assert occasion in self._made, "it could not be made for the first test"
        return self._made[occasion]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenes]:
    with contextlib.ExitStack() as stack:
        yield Scenes(tmp_path_factory, stack)


@pytest.fixture
def scene(scenes: Scenes, occasion: str) -> Scene:
    return scenes[occasion]


def test_every_case_is_noticed_at_the_start_and_later_and_a_soak_takes_all_on_each_occasion() -> None:
    assert COUNTS["changes noticed late"].long == len(CASES) == len(Grade) * len(Reaction)
    assert {case for occasion in [*OCCASIONS][1:] for case in cases_on(occasion)} == {*CASES}


@pytest.mark.soak("changes noticed late")
@pytest.mark.parametrize("occasion", OCCASIONS)
def test_only_what_is_approved_or_accepted_is_listed(scene: Scene) -> None:
    assert shown(scene.client) == expected(scene.cases)


@pytest.mark.covers("mcp.pins.change")
@pytest.mark.soak("changes noticed late")
@pytest.mark.parametrize(("occasion", "grade", "reaction"), TRIED)
def test_a_change_is_served_or_withheld_as_its_setting_says(scene: Scene, grade: str, reaction: str) -> None:
    alias, canary = alias_of(grade, reaction), canary_of(grade, reaction)
    name = listed(alias, canary if grade == "added" else "t")
    arguments = {canary: "x"} if grade == "breaking" else {}
    said = scene.client.call(name, arguments)
    if reaction != "accept":
        assert said == "TOOL_WITHHELD"
    elif grade == "removed":
        assert said == "UNKNOWN_TOOL"
    else:
        assert said.endswith(" ran")
    assert scene.client.call(listed(alias, "u")) == f"{own('u', alias)} ran"


@pytest.mark.soak("changes noticed late")
@pytest.mark.parametrize(("occasion", "grade", "reaction"), [case for case in TRIED if case[2] != "accept"])
def test_nothing_of_a_withheld_definition_reaches_the_client_or_its_server(
    scene: Scene, grade: str, reaction: str
) -> None:
    alias, canary = alias_of(grade, reaction), canary_of(grade, reaction)
    called = own("t" if grade != "added" else canary, alias)
    scene.client.call(listed(alias, called), {canary: "x"})
    assert canary.encode() not in scene.client.received
    ran = (scene.folder / alias / "calls").read_text().split()
    assert called not in ran
