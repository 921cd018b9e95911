"""What is known about a run, and what it may not hold."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.provenance.subject import Subject


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tool": ""}, "tool: must have 1 to 200 characters"),
        ({"tool": "x" * 201}, "tool: must have 1 to 200 characters"),
        ({"tool": "t", "version": ""}, "version: must have 1 to 100 characters"),
        ({"tool": "t", "adapter": "x" * 101}, "adapter: must have 1 to 100 characters"),
        ({"tool": "t", "request_id": "x" * 201}, "request_id: must have 0 to 200 characters"),
        ({"tool": "t", "policy_digest": "A" * 64}, "policy_digest: must be 64 lower-case hexadecimal digits"),
        ({"tool": "t", "rule_digest": ""}, "rule_digest: must be 64 lower-case hexadecimal digits"),
        ({"tool": "t", "methods": ("Bad-id",)}, "methods: 'Bad-id' is not a method id"),
        ({"tool": "t", "methods": ("engine.ok", "audit.x")}, "starts with audit, which is reserved"),
    ],
)
def test_a_subject_that_no_record_may_hold_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Subject(**given)
