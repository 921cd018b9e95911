"""As many tools as `BENCH_TOOLS` says, and the echo tool among them."""

import os

from portbook import Toolset

__all__ = ["toolset"]

toolset = Toolset("bench")


@toolset.tool(effect="read")
async def echo(text: str) -> dict[str, str]:
    """Say it again."""
    return {"text": text}


for number in range(int(os.environ["BENCH_TOOLS"]) - 1):
    toolset.tool(effect="read", name=f"other_{number}")(echo)
