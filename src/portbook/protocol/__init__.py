"""The MCP protocol: its revisions, its methods, and the validation of messages. Pure: no I/O."""
