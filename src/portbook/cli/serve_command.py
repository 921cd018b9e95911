"""The options of `portbook serve`, as click reads them and shows them in its help."""

from __future__ import annotations

from typing import Any

import click

from portbook.cli.options import common_options, debug_option, toolsets_argument
from portbook.cli.serve import serve

__all__ = ["command"]


@click.command("serve")
@toolsets_argument
@click.option("--stdio", is_flag=True, help="Serve standard input and output, one message per line.")
@click.option(
    "--http", is_flag=True, help="Serve HTTP: MCP at /mcp, calls at /execute and /rpc, pages at / and /docs."
)
@click.option("--host", help="Address of the HTTP server.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port of the HTTP server; 0 picks a free one.  [default: 8765]")
@click.option(
    "--workers",
    metavar="N|auto",
    help="Processes that serve HTTP together; auto is one for each processor.  [default: 1]",
)
@click.option(
    "--schema-override",
    metavar="URI",
    help="File or address of a schema that replaces the embedded official one.",
)
@click.option(
    "--server",
    "servers",
    metavar="ALIAS",
    multiple=True,
    help="Of the MCP servers in the settings, serve this one and no other. Repeatable.",
)
@click.option("--reload", is_flag=True, help="Take up toolsets, settings and documents when they change.")
@debug_option
@common_options
def command(**given: Any) -> None:
    """Serve tools over STDIO, HTTP or both.

    TOOLSETS are Python files or modules with a Toolset. Without --stdio and --http: HTTP if standard input is
    a terminal, STDIO if it is a pipe.
    """
    serve(**given)
