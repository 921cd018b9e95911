"""A server that changes a definition: every kind of change under every setting, whenever it is noticed.

Each server has two tools. One of them changes, and all that is new about it has a canary in it: where the
change is withheld, the canary must not reach the client. The other tool is always served.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from portbook.pins.on_change import Grade, Reaction
from support.portbook_process import TESTS, run
from support.stdio_session import StdioSession, stdio_session

SERVER = TESTS / "support" / "changing_server.py"
TEXT: dict[str, Any] = {"type": "string"}
CASES = [(grade.value, reaction.value) for grade, reaction in product(Grade, Reaction)]


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


def change(folder: Path) -> None:
    for grade, reaction in CASES:
        offer(folder, alias_of(grade, reaction), after(grade, canary_of(grade, reaction)))


# The lock by the options of the servers: it is the same whenever they start.
LOCKS: dict[tuple[str, ...], bytes] = {}


def make(folder: Path, start: str, *options: str) -> Path:
    """Write the settings and the lock, which has every definition as it was before."""
    tables: list[str] = []
    for grade, reaction in CASES:
        alias = alias_of(grade, reaction)
        offer(folder, alias, [a_tool(), a_tool("u")])
        command = json.dumps([sys.executable, str(SERVER), alias, *options])
        on_change = f'{{ {grade} = "{reaction}" }}'
        tables.append(f'[mcp.{alias}]\ncommand = {command}\nstart = "{start}"\non_change = {on_change}\n')
    (folder / "portbook.toml").write_text("[docs]\nenabled = false\n" + "".join(tables))
    if options not in LOCKS:
        done = run("pin", cwd=folder)
        assert done.code == 0, done.err
        LOCKS[options] = (folder / "portbook.lock").read_bytes()
    (folder / "portbook.lock").write_bytes(LOCKS[options])
    return folder


def notice_at_start(folder: Path) -> Iterator[Scene]:
    make(folder, "eager")
    change(folder)
    with stdio_session(folder) as client:
        client.tools()
        yield Scene(folder, client)


def notice_at_the_first_call(folder: Path) -> Iterator[Scene]:
    make(folder, "lazy")
    (folder / "words_ask" / "starts").unlink(missing_ok=True)
    change(folder)
    with stdio_session(folder) as client:
        assert len(client.tools()) == 2 * len(CASES)
        assert b"canary" not in client.received
        assert not (folder / "words_ask" / "starts").exists()
        for grade, reaction in CASES:
            client.call(listed(alias_of(grade, reaction), "u"))
        yield Scene(folder, client)


def notice_when_told(folder: Path) -> Iterator[Scene]:
    make(folder, "eager")
    with stdio_session(folder) as client:
        assert len(client.tools()) == 2 * len(CASES)
        change(folder)
        client.wait_until(lambda: set(client.tools()) == set(expected()))
        yield Scene(folder, client)


def notice_at_reconnect(folder: Path) -> Iterator[Scene]:
    make(folder, "eager", "silent")
    with stdio_session(folder) as client:
        assert len(client.tools()) == 2 * len(CASES)
        change(folder)
        assert len(client.tools()) == 2 * len(CASES)
        for grade, reaction in CASES:
            client.call(listed(alias_of(grade, reaction), "u"), {"a": "end"})
        client.wait_until(lambda: set(client.tools()) == set(expected()))
        yield Scene(folder, client)


def expected() -> dict[str, bool]:
    """Return the names that are listed in the end, and whether each has changed."""
    names: dict[str, bool] = {}
    for grade, reaction in CASES:
        alias = alias_of(grade, reaction)
        names[listed(alias, "u")] = False
        if grade == "added":
            names[listed(alias, "t")] = False
            if reaction == "accept":
                names[f"{alias}__{canary_of(grade, reaction)}"] = True
        elif reaction == "accept" and grade != "removed":
            names[listed(alias, "t")] = True
    return names


OCCASIONS: dict[str, Callable[[Path], Iterator[Scene]]] = {
    "start": notice_at_start,
    "first call": notice_at_the_first_call,
    "list_changed": notice_when_told,
    "reconnect": notice_at_reconnect,
}


@pytest.fixture(scope="module", params=OCCASIONS)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    yield from OCCASIONS[request.param](tmp_path_factory.mktemp("changed"))


def test_only_what_is_approved_or_accepted_is_listed(scene: Scene) -> None:
    tools = scene.client.tools()
    assert set(tools) == set(expected())
    for name, is_changed in expected().items():
        assert ("canary" in json.dumps(tools[name])) is is_changed


@pytest.mark.covers("mcp.pins.change")
@pytest.mark.parametrize(("grade", "reaction"), CASES)
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


@pytest.mark.parametrize(("grade", "reaction"), [case for case in CASES if case[1] != "accept"])
def test_nothing_of_a_withheld_definition_reaches_the_client_or_its_server(
    scene: Scene, grade: str, reaction: str
) -> None:
    alias, canary = alias_of(grade, reaction), canary_of(grade, reaction)
    called = own("t" if grade != "added" else canary, alias)
    scene.client.call(listed(alias, called), {canary: "x"})
    assert canary.encode() not in scene.client.received
    ran = (scene.folder / alias / "calls").read_text().split()
    assert called not in ran
