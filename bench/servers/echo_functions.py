"""What the echo tools of the comparison and of the counts do; each server makes tools of them."""

from pydantic import BaseModel

__all__ = ["Echo", "echo", "echo_inline", "echo_write"]


class Echo(BaseModel):
    """What every tool answers with."""

    text: str


async def echo(text: str) -> Echo:
    """Say it again."""
    return Echo(text=text)


def echo_inline(text: str) -> Echo:
    """Say it again, on the event loop itself."""
    return Echo(text=text)


async def echo_write(text: str) -> Echo:
    """Say it again, as a tool with effects, whose intent is recorded first."""
    return Echo(text=text)
