"""Addresses, names and connections: which are allowed, and how they are used."""
