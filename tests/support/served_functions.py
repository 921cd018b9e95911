"""A function served as a tool, and called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from portbook import Toolset
from portbook.tools.catalog import Catalog, Tool


def serve(function: Callable[..., Any], **options: Any) -> Tool:
    """The tool that a function becomes, with its contract compiled."""
    toolset = Toolset("test")
    toolset.tool(**{"name": "tool", **options})(function)
    (tool,) = Catalog(toolset.specs())
    return tool


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)
