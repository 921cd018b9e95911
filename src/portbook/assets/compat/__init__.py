"""Whether a change of a schema breaks what was valid."""
