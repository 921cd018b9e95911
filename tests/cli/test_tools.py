from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.portbook_process import PORTBOOK, SAMPLE_TOOLS, environment, run
from support.pseudo_terminal import on_a_terminal


def test_tools_are_data_on_a_pipe(tmp_path: Path) -> None:
    finished = run("tools", str(SAMPLE_TOOLS), cwd=tmp_path)
    tools = {tool["name"]: tool for tool in json.loads(finished.out)["tools"]}
    assert list(tools) == sorted(tools)
    assert tools["echo"]["tool"] == "mcp.tool:echo"
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
    assert "broken.py:1:7: not valid Python: " in finished.err
    assert "Traceback" not in finished.err


OFFERS = """
from portbook import Toolset

toolset = Toolset("offers")

@toolset.tool(effect="read")
def count() -> int:
    return 0

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
    assert [tool["name"] for tool in listed["tools"]] == ["count"]
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
        "count",
        "resources:",
        "notes://{name}",
        "prompts:",
        "greet",
    ]


def served_names(folder: Path, *arguments: str, **variables: str) -> list[str]:
    finished = run("tools", *arguments, cwd=folder, env=environment(**variables))
    assert finished.code == 0, finished.err
    return [tool["name"] for tool in json.loads(finished.out)["tools"]]


@pytest.mark.parametrize(
    "named", ["offers.py", "./offers.py", "sub/../offers.py", "linked.py", "hard.py", "offers", "sub/out.py"]
)
@pytest.mark.parametrize("in_settings", ["offers.py", "offers"])
def test_a_toolset_that_is_named_twice_is_served_once(tmp_path: Path, in_settings: str, named: str) -> None:
    (tmp_path / "offers.py").write_text(OFFERS)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "out.py").symlink_to(tmp_path / "offers.py")
    (tmp_path / "linked.py").symlink_to("offers.py")
    (tmp_path / "hard.py").hardlink_to(tmp_path / "offers.py")
    (tmp_path / "portbook.toml").write_text(f'[python]\ntoolsets = ["{in_settings}"]\n')
    for names in ([named], [str(tmp_path / "offers.py"), named]):
        assert served_names(tmp_path, *names) == ["count"]


def test_a_toolset_that_two_modules_offer_is_served_once(tmp_path: Path) -> None:
    (tmp_path / "offers.py").write_text(OFFERS)
    (tmp_path / "again.py").write_text("from offers import toolset\n")
    assert served_names(tmp_path, "offers", "again.py") == ["count"]


MORE = """
@toolset.tool(effect="read")
def more() -> int:
    return 1
"""


@pytest.mark.parametrize("named", [("offers.py", "again.py"), ("again.py", "offers.py"), ("again.py",)])
@pytest.mark.parametrize(
    ("offers", "imported"),
    [("offers.py", "offers"), ("pack/offers.py", "pack.offers"), ("real.py", "offers")],
)
def test_a_toolset_that_a_second_file_adds_to_is_served_once(
    tmp_path: Path, offers: str, imported: str, named: tuple[str, ...]
) -> None:
    (tmp_path / offers).parent.mkdir(exist_ok=True)
    (tmp_path / offers).write_text(OFFERS)
    if offers == "real.py":
        (tmp_path / "offers.py").symlink_to("real.py")
    (tmp_path / "again.py").write_text(f"from {imported} import toolset\n{MORE}")
    sources = [offers if name == "offers.py" else name for name in named]
    assert served_names(tmp_path, *sources) == ["count", "more"]


def test_two_files_with_the_same_tool_are_still_refused(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(OFFERS)
    finished = run("tools", "one.py", "two.py", cwd=tmp_path)
    assert finished.code == 2
    assert "'count' is declared twice" in finished.err


HTTP = """
[http.orders]
base_url = "https://api.example.com"
[http.orders.tools.get]
method = "GET"
path = "/"
"""


@pytest.mark.parametrize(
    ("settings", "toolsets", "expected"),
    [
        ("", [], ["docs.search"]),
        ("", ["offers.py"], ["count"]),
        ('[python]\ntoolsets = ["offers.py"]\n', [], ["count"]),
        (HTTP, [], ["orders.get"]),
        ("[docs]\nenabled = true\n", ["offers.py"], ["count", "docs.search"]),
        ('[docs]\nfolder = "handbook"\n', ["offers.py"], ["count", "docs.search"]),
        ('[docs]\nfolder = "handbook"\nenabled = false\n', ["offers.py"], ["count"]),
        ("[docs]\nenabled = false\n", [], []),
    ],
)
def test_docs_search_is_served_where_nothing_else_is_or_where_it_is_asked_for(
    tmp_path: Path, settings: str, toolsets: list[str], expected: list[str]
) -> None:
    (tmp_path / "offers.py").write_text(OFFERS)
    (tmp_path / "portbook.toml").write_text(settings)
    assert served_names(tmp_path, *toolsets) == expected


def test_an_asset_library_is_something_to_serve(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    assert "docs.search" not in served_names(tmp_path, SYN_SCHEMAS_DIR="schemas")
    assert "docs.search" in served_names(tmp_path, SYN_SCHEMAS_DIR="schemas", PORTBOOK_DOCS="schemas")


VENDORS = {
    "openapi": "3.0.3",
    "paths": {
        "/orders": {"get": {"operationId": "listOrders", "responses": {}}},
        "/dangling": {"get": {"operationId": "dangling", "parameters": [{"$ref": "#/components/none"}]}},
        "/a": {"get": {"operationId": "same", "responses": {}}},
        "/b": {"get": {"operationId": "same", "responses": {}}},
    },
}


def _with_document(folder: Path) -> None:
    (folder / "api.json").write_text(json.dumps(VENDORS))
    (folder / "portbook.toml").write_text(
        '[http.shop]\nbase_url = "https://shop.example"\nopenapi = "api.json"\n'
    )


@pytest.mark.covers("002.tools.openapi-left-out")
def test_what_is_left_out_of_a_document_is_listed_and_the_rest_is_served(tmp_path: Path) -> None:
    _with_document(tmp_path)
    served = [tool["name"] for tool in json.loads(run("tools", cwd=tmp_path).out)["tools"]]
    assert served == ["shop.list_orders", "shop.same_hn3g7tdbbm", "shop.same_pigk6kg9ew"]
    finished = run("tools", "--left-out", "--json", cwd=tmp_path)
    assert finished.code == 0
    assert json.loads(finished.out) == {
        "left_out": [
            {
                "tool": "shop.dangling",
                "file": "api.json",
                "pointer": "/paths/~1dangling/get",
                "method": "GET",
                "cause": "reference",
                "reason": (
                    "api.json#/paths/~1dangling/get/parameters/0: refers to a part that does not exist"
                ),
            }
        ]
    }


def test_what_is_left_out_is_lines_on_a_terminal(tmp_path: Path) -> None:
    _with_document(tmp_path)
    shown, _ = on_a_terminal(tmp_path, "tools", "--left-out", term="dumb")
    assert "shop.dangling" in shown
    assert "api.json#/paths/~1dangling/get: " in shown


def test_a_start_says_in_one_line_what_is_left_out(tmp_path: Path) -> None:
    _with_document(tmp_path)
    finished = run("serve", "--stdio", cwd=tmp_path)
    assert finished.code == 0
    said = [line for line in finished.err.splitlines() if "left out" in line]
    assert len(said) == 1
    assert "1 of 4 operations of api.json is left out: 1 with a reference that cannot be followed" in said[0]
