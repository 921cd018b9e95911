"""From settings to a running boundary."""
