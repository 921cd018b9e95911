"""The echo tool on FastMCP; runs in an environment with FastMCP alone."""

from fastmcp import FastMCP
from pydantic import BaseModel

server = FastMCP("echo")


class Echo(BaseModel):
    """What every server answers with."""

    text: str


@server.tool
async def echo(text: str) -> Echo:
    """Say it again."""
    return Echo(text=text)


if __name__ == "__main__":
    server.run(transport="stdio", show_banner=False)
