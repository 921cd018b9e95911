"""Finds attacks in the definitions of MCP servers, offline and from the text alone. Pure: no I/O."""
