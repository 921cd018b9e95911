"""Addresses, names and connections: which may be used, and how."""
