"""The echo tool on the official Python SDK; runs in an environment with that SDK alone."""

import sys

from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

server = MCPServer("echo", log_level="ERROR")


class Echo(BaseModel):
    """What every server answers with."""

    text: str


@server.tool()
async def echo(text: str) -> Echo:
    """Say it again."""
    return Echo(text=text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        stateless = sys.argv[3:4] == ["--stateless"]
        server.run("streamable-http", port=int(sys.argv[2]), json_response=True, stateless_http=stateless)
    else:
        server.run("stdio")
