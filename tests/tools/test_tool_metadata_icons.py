"""What listings say of something beside its contract is checked when it is declared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portbook import Toolset
from portbook.testing import TestClient
from portbook.tools.spec import BadTool
from portbook.tools.toolset_loader import load_toolsets

ICON = {"src": "https://example.com/x.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}

BAD_ICONS = [
    ["https://example.com/x.png"],
    "https://example.com/x.png",
    [{}],
    [{"src": 5}],
    [{"src": "no address"}],
    [ICON, {"src": "https://example.com", "sizes": "48x48"}],
    [{"src": "https://example.com", "theme": "blue"}],
    [{"src": "https://example.com", "mime_type": "image/png"}],
]


def as_tool(**options: Any) -> None:
    Toolset("t").tool(name="it", **options)(lambda: 1)


def as_resource(**options: Any) -> None:
    Toolset("t").resource("a://it", **options)(lambda: "")


def as_prompt(**options: Any) -> None:
    Toolset("t").prompt(name="it", **options)(lambda: "")


DECLARE = [as_tool, as_resource, as_prompt]


@pytest.mark.parametrize("declare", DECLARE)
@pytest.mark.parametrize("icons", BAD_ICONS, ids=str)
def test_icons_that_no_list_can_hold_stop_the_start(declare: Callable[..., None], icons: Any) -> None:
    with pytest.raises(BadTool, match=r"(tool 'it'|resource 'a://it'|prompt 'it'): icons"):
        declare(icons=icons)


@pytest.mark.parametrize("declare", DECLARE)
@pytest.mark.parametrize("more", [{"title": 5}, {"title": ""}, {"timeout_ms": 0}])
def test_what_else_no_list_can_hold_stops_the_start(declare: Callable[..., None], more: Any) -> None:
    with pytest.raises(BadTool, match="it': "):
        declare(**more)


@pytest.mark.parametrize("declare", DECLARE)
def test_icons_that_mcp_has_are_taken(declare: Callable[..., None]) -> None:
    declare(icons=[ICON], title="It")
    declare(icons=(ICON,))


@pytest.mark.parametrize(
    "annotations",
    [
        {"priority": 7},
        {"priority": "high"},
        {"audience": "user"},
        {"audience": ["robot"]},
        {"lastModified": 5},
        {"last_modified": "2026"},
        ["priority"],
    ],
    ids=str,
)
def test_annotations_that_no_resource_can_have_stop_the_start(annotations: Any) -> None:
    with pytest.raises(BadTool, match="resource 'a://it': annotations"):
        as_resource(annotations=annotations)


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"idempotentHint": "yes"}, "annotations/idempotentHint"),
        ({"idempotent": True}, "annotations"),
        (["idempotentHint"], "annotations"),
        ({"readOnlyHint": True}, r"remove readOnlyHint and destructiveHint; effect="),
        ({"destructiveHint": False}, r"remove readOnlyHint and destructiveHint; effect="),
    ],
)
def test_annotations_that_no_tool_can_have_stop_the_start(annotations: Any, said: str) -> None:
    with pytest.raises(BadTool, match=f"tool 'it': .*{said}"):
        as_tool(annotations=annotations)


@pytest.mark.parametrize("task", [True, False, None, "always"])
def test_a_task_is_said_in_one_of_three_words(task: Any) -> None:
    with pytest.raises(BadTool, match="tool 'it': task must be one of never, optional, required"):
        as_tool(task=task)


def test_the_start_names_the_line(tmp_path: Path) -> None:
    tools = tmp_path / "shown_tools.py"
    tools.write_text(
        "from portbook import Toolset\n"
        "toolset = Toolset('t')\n"
        "@toolset.tool(icons=['https://example.com/x.png'])\n"
        "def it() -> int: return 1\n"
    )
    with pytest.raises(BadTool, match=r"shown_tools\.py:3:2: tool 'it': icons/0: "):
        load_toolsets(str(tools))


HINTS = {"idempotentHint": True, "openWorldHint": False}
shown = Toolset("t")


@shown.tool(effect="write", title="It", annotations=HINTS, icons=[{"src": "https://example.com/x.png"}])
def it() -> int:
    return 1


@shown.resource(
    "a://it",
    annotations={"priority": 0.5, "audience": ["user"]},
    icons=[{"src": "data:image/png;base64,AA=="}],
)
def read() -> str:
    return ""


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"])
def test_what_is_declared_is_listed(revision: str) -> None:
    with TestClient(shown, revision=revision) as client:
        tool = client.tools()["it"]
        effect = {"readOnlyHint": False, "destructiveHint": False}
        assert tool.get("annotations") == (None if revision == "2024-11-05" else {**effect, **HINTS})
        assert ("icons" in tool) == (revision >= "2025-11-25")
        assert client.resources()["a://it"]["annotations"] == {"priority": 0.5, "audience": ["user"]}
