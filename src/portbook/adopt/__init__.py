"""Puts Portbook in front of the MCP servers of the clients on this machine, and takes it away again."""
