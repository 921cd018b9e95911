"""The tools whose instructions are counted, and one that marks where a count begins."""

import os

from pydantic import BaseModel

from portbook import Toolset

__all__ = ["toolset"]

toolset = Toolset("counted")


class Echo(BaseModel):
    """What every tool answers with."""

    text: str


@toolset.tool(effect="read")
async def echo(text: str) -> Echo:
    """Say it again."""
    return Echo(text=text)


@toolset.tool(effect="read", inline=True)
def echo_inline(text: str) -> Echo:
    """Say it again, on the event loop itself."""
    return Echo(text=text)


@toolset.tool(effect="read")
async def echo_where(text: str) -> Echo:
    """Say it again, where a rule looks at the text."""
    return Echo(text=text)


@toolset.tool(effect="write")
async def echo_write(text: str) -> Echo:
    """Say it again, as a tool with effects."""
    return Echo(text=text)


@toolset.tool(effect="read", inline=True)
def mark(text: str) -> Echo:
    """Call a function of the C library that nothing else calls: callgrind starts a new count there."""
    os.getppid()
    return Echo(text=text)
