"""Decides whether a change of a schema breaks valid documents."""
