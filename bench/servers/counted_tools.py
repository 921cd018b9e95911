"""The tools whose instructions are counted, and one that marks where a count begins."""

import os

from echo_functions import Echo, echo, echo_inline, echo_write

from portbook import Toolset

__all__ = ["toolset"]

toolset = Toolset("counted")
toolset.tool(effect="read")(echo)
toolset.tool(effect="read", inline=True)(echo_inline)
toolset.tool(effect="write")(echo_write)


@toolset.tool(effect="read")
async def echo_where(text: str) -> Echo:
    """Say it again, where a rule looks at the text."""
    return Echo(text=text)


@toolset.tool(effect="read", inline=True)
def mark(text: str) -> Echo:
    """Call a function of the C library that nothing else calls: callgrind starts a new count there."""
    os.getppid()
    return Echo(text=text)
