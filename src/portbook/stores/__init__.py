"""Persistent state in one SQLite file: approvals, keys and sessions."""
