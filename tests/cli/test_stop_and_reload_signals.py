"""Which lists a reload has changed."""

from __future__ import annotations

import pytest

from portbook.cli.stop_and_reload_signals import changed_lists, served_lists
from portbook.model import Kind
from portbook.tools.catalog import Catalog
from portbook.tools.toolset import Toolset


def lists(description: str = "Say hello.", *, has_prompt: bool = False) -> dict[Kind, str]:
    toolset = Toolset("x")

    @toolset.tool(effect="read", description=description)
    def greet() -> str:
        return ""

    if has_prompt:

        @toolset.prompt
        def start() -> str:
            "Start."
            return ""

    return served_lists(Catalog(toolset.specs()))


@pytest.mark.parametrize(
    ("new", "changed"),
    [
        (lists(), []),
        (lists("Say goodbye."), ["tool"]),
        (lists(has_prompt=True), ["prompt"]),
        (lists("Say goodbye.", has_prompt=True), ["tool", "prompt"]),
    ],
)
def test_a_list_has_changed_where_a_client_would_see_it(new: dict[Kind, str], changed: list[Kind]) -> None:
    assert changed_lists(lists(), new) == changed
    assert changed_lists(new, lists()) == changed
