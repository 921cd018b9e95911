"""An echo tool whose types JSON has too: it starts without pydantic."""

from portbook import Toolset

__all__ = ["toolset"]

toolset = Toolset("bench")


@toolset.tool(effect="read")
async def echo(text: str) -> dict[str, str]:
    """Say it again."""
    return {"text": text}
