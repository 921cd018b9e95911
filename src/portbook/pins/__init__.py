"""Definitions of MCP servers behind Portbook: which are approved, and how they have changed since."""
