"""FastMCP's proxy in front of a command; runs in an environment with FastMCP alone."""

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    create_proxy(StdioTransport(command, arguments)).run(transport="stdio", show_banner=False)
