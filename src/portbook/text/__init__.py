"""Patterns and names in texts. Pure: no I/O."""
