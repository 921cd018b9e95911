"""The Model Context Protocol: its dialect, its connections, tasks and subscriptions."""
