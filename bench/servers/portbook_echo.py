"""The echo tool of the comparison, and its variants, for `portbook serve`."""

from echo_functions import Echo, echo, echo_inline, echo_write

from portbook import Toolset

__all__ = ["toolset"]

toolset = Toolset("bench")
toolset.tool(effect="read")(echo)
toolset.tool(effect="read", inline=True)(echo_inline)
toolset.tool(effect="write")(echo_write)


@toolset.tool(effect="read")
def echo_thread(text: str) -> Echo:
    """Say it again, in a thread."""
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
