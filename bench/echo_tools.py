"""The echo function as a tool, for `portbook serve --stdio bench/echo_tools.py`."""

from echo import echo

from portbook import Toolset

__all__ = ["toolset"]

toolset = Toolset("bench")
toolset.tool(effect="read", inline=True)(echo)
