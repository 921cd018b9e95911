"""Options of decorators: each of its type, and what is said of one that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.tools.spec import BadTool
from portbook.tools.tool_metadata import require_options


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("description", 5, "description must be a text, not an int"),
        ("title", b"x", "title must be a text, not a bytes"),
        ("inline", 1, "inline must be True or False, not an int"),
        ("timeout_ms", "1", "timeout_ms must be a whole number of milliseconds, not a str"),
        ("timeout_ms", True, "timeout_ms must be a whole number of milliseconds, not a bool"),
        ("timeout_ms", 0, "timeout_ms must be above 0"),
        ("cache_ms", -1, "cache_ms must be 0 or above"),
        ("icons", {}, "icons must be a list, not a dict"),
        ("complete", [], "complete must be a dict, not a list"),
        ("folder", 5, "folder must be a path, not an int"),
    ],
)
def test_an_option_of_another_type_is_told_in_words(option: str, value: Any, says: str) -> None:
    with pytest.raises(BadTool) as raised:
        require_options("tool 'a'", **{option: value})
    assert str(raised.value) == f"tool 'a': {says}"


def test_options_of_their_types_and_those_that_are_not_given_pass() -> None:
    require_options(
        "tool 'a'",
        name="a",
        description=None,
        inline=False,
        timeout_ms=1,
        cache_ms=0,
        icons=(),
        complete={},
        folder=Path(),
    )
