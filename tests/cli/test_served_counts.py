"""How many of each kind are served."""

from __future__ import annotations

from portbook import Toolset
from portbook.cli.stop_and_reload_signals import served_counts
from portbook.tools.catalog import Catalog


def test_each_kind_is_counted_and_nothing_is_no_tools() -> None:
    toolset = Toolset("x")
    for name in ("a", "b"):
        toolset.tool(name=name)(lambda: 1)
    toolset.resource("notes://all")(lambda: "x")
    assert served_counts(Catalog(toolset.specs())) == "2 tools, 1 resource"
    assert served_counts(Catalog([])) == "0 tools"
