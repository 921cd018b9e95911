"""Confines the MCP servers that Portbook starts: files, ports, memory and processes, by the kernel."""
