"""How long a call may run. Pure: no I/O; an executor keeps the deadline."""

from __future__ import annotations

from portbook.policy import Policy
from portbook.tools.catalog import Tool

__all__ = ["timeout_ms_of"]


def timeout_ms_of(tool: Tool, policy: Policy, default_ms: int) -> int:
    """Return the time that `tool` may take, in milliseconds.

    1. The tool's own timeout; without one, the default of the settings.
    2. Never more than policy allows (`max_execution_timeout_ms`).
    """
    timeout_ms = tool.spec.timeout_ms or default_ms
    longest = policy.limits.max_execution_timeout_ms
    return timeout_ms if longest is None else min(timeout_ms, longest)
