from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from support.portbook_process import PORTBOOK, SAMPLE_TOOLS, environment, run


def test_tools_are_data_on_a_pipe(tmp_path: Path) -> None:
    finished = run("tools", str(SAMPLE_TOOLS), cwd=tmp_path)
    tools = {tool["name"]: tool for tool in json.loads(finished.out)["tools"]}
    assert list(tools) == sorted(tools)
    assert tools["docs.search"]["tool"] == "mcp.tool:docs.search"
    assert tools["echo"]["effect"] == "read"
    assert tools["echo"]["input"]["properties"] == {"text": {"type": "string"}}
    assert tools["echo"]["output"]["type"] == "string"
    assert not (tmp_path / "runs").exists()


def test_tools_are_a_table_on_a_terminal(tmp_path: Path) -> None:
    controller, terminal = os.openpty()
    subprocess.run(
        [*PORTBOOK, "tools", str(SAMPLE_TOOLS)],
        stdout=terminal,
        cwd=tmp_path,
        env=environment(NO_COLOR="1"),
        check=True,
    )
    os.close(terminal)
    shown = os.read(controller, 65536).decode()
    os.close(controller)
    assert "hanging" in shown
    assert "Never come back." in shown


def test_a_broken_toolset_is_explained(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    finished = run("tools", "broken.py", cwd=tmp_path)
    assert finished.code == 2
    assert "broken.py: line 1: " in finished.err
    assert "Traceback" not in finished.err


OFFERS = """
from portbook import Toolset

toolset = Toolset("offers")

@toolset.resource("notes://{name}")
def note(name: str) -> str:
    '''One note.'''
    return name

@toolset.prompt
def greet(name: str) -> str:
    '''A greeting.'''
    return name
"""


def test_resources_and_prompts_are_listed_beside_the_tools(tmp_path: Path) -> None:
    (tmp_path / "offers.py").write_text(OFFERS)
    listed = json.loads(run("tools", "offers.py", cwd=tmp_path).out)
    assert [tool["name"] for tool in listed["tools"]] == ["docs.search"]
    assert [each["tool"] for each in listed["resources"]] == ["mcp.resource:notes://{name}"]
    assert [(each["name"], each["description"]) for each in listed["prompts"]] == [("greet", "A greeting.")]
    controller, terminal = os.openpty()
    subprocess.run(
        [*PORTBOOK, "tools", "offers.py"],
        stdout=terminal,
        cwd=tmp_path,
        env=environment(NO_COLOR="1"),
        check=True,
    )
    os.close(terminal)
    lines = os.read(controller, 65536).decode().splitlines()
    os.close(controller)
    assert [line.split()[0] for line in lines] == [
        "tools:",
        "docs.search",
        "resources:",
        "notes://{name}",
        "prompts:",
        "greet",
    ]
