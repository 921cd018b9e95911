"""MCP servers behind Portbook: their processes and connections, what they offer, and calls of it."""
