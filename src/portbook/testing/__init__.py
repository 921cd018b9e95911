"""Test your tools through the whole boundary, in one process: no server, no network, no files.

    from portbook.testing import TestClient

    def test_a_large_refund_needs_approval():
        with TestClient(toolset, policy={"approval": "writes"}) as client:
            result = client.call("refund", order=5, cents=20_000)
            assert result.reason == "APPROVAL_REQUIRED"
            client.approve(result)
            assert client.call("refund", order=5, cents=20_000).value == {"refunded": 20_000}

Everything is loaded when it is first asked for: the pytest plugin imports this package in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from portbook.access.approval_state_and_binding import Undecidable
    from portbook.settings import BadSettings
    from portbook.testing.async_client import AsyncTestClient
    from portbook.testing.call_result import CallResult, LogMessage, NoResult, Progress, Violation
    from portbook.testing.client import Approval, Decided, TestClient
    from portbook.testing.fake_http_api import ApiRequest, ApiResponse, Upstream
    from portbook.testing.fixed_time import FixedClock
    from portbook.testing.questions_and_answers import Answers, Inquiry

__all__ = [
    "Answers",
    "ApiRequest",
    "ApiResponse",
    "Approval",
    "AsyncTestClient",
    "BadSettings",
    "CallResult",
    "Decided",
    "FixedClock",
    "Inquiry",
    "LogMessage",
    "NoResult",
    "Progress",
    "TestClient",
    "Undecidable",
    "Upstream",
    "Violation",
]

_HOMES = {
    **dict.fromkeys(("Answers", "Inquiry"), "portbook.testing.questions_and_answers"),
    **dict.fromkeys(("ApiRequest", "ApiResponse", "Upstream"), "portbook.testing.fake_http_api"),
    **dict.fromkeys(("Approval", "Decided"), "portbook.testing.client"),
    **dict.fromkeys(
        ("CallResult", "LogMessage", "NoResult", "Progress", "Violation"), "portbook.testing.call_result"
    ),
    "AsyncTestClient": "portbook.testing.async_client",
    "BadSettings": "portbook.settings",
    "FixedClock": "portbook.testing.fixed_time",
    "TestClient": "portbook.testing.client",
    "Undecidable": "portbook.access.approval_state_and_binding",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'portbook.testing' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
