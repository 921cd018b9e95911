"""MCP itself: its revisions, its methods, and whether a message conforms. Pure: no I/O."""
