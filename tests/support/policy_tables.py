"""Calls and policies, written as tables."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.policy import Limits, Policy, PolicyInput, read_policy
from portbook.tools.spec import Effect

CALL = PolicyInput("refund", Effect.WRITE, "ada", {"cents": 500}, {}, 13)


def rule(name: str, action: str, **conditions: Any) -> dict[str, Any]:
    return {"name": name, "action": action, **conditions}


def policy(*rules: dict[str, Any], **limits: Any) -> Policy:
    return read_policy(
        Limits(**limits),
        rules,
        ["http://127.0.0.1:9000"],
        lambda path: f"test.toml:{len(path)}",
        is_redacting=False,
    )


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)
