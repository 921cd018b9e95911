"""The echo tool of the comparison, and its variants, for `portbook serve`."""

from pydantic import BaseModel

from portbook import Toolset

__all__ = ["toolset"]

toolset = Toolset("bench")


class Echo(BaseModel):
    """What every server answers with."""

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
def echo_thread(text: str) -> Echo:
    """Say it again, in a thread."""
    return Echo(text=text)


@toolset.tool(effect="write")
async def echo_write(text: str) -> Echo:
    """Say it again, as a tool with effects, whose intent is recorded first."""
    return Echo(text=text)


# In the bare dialect the method is the tool, and only the names of the asset tools are methods.
@toolset.tool(effect="read", name="list_schemas")
async def echo_bare(text: str) -> Echo:
    """Say it again, to whoever calls it in the bare dialect."""
    return Echo(text=text)


@toolset.tool(effect="read")
async def echo_items(items: list[str]) -> dict[str, list[str]]:
    """Return a payload of any size."""
    return {"items": items}
