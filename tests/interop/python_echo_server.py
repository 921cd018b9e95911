"""The smallest server that the official Python SDK makes; runs in an environment with that SDK alone."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo", log_level="ERROR")


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


if __name__ == "__main__":
    server.run("stdio")
