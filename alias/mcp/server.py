"""Where servers of the official SDK find `FastMCP`; this one has none, and says what it has instead."""

_missing = ModuleNotFoundError("No module named 'mcp.server'", name="mcp.server")
_missing.add_note(
    "This mcp is Portbook, not the official SDK: declare tools with a Toolset; "
    "docs/how-to/come-from-fastmcp.md (Come from FastMCP) shows how."
)
raise _missing
