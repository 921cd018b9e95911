"""A tool's result as JSON: small or large, a number that JSON does not have is found."""

from __future__ import annotations

from typing import Any

import pytest

from portbook import Toolset
from portbook.errors import Failed
from portbook.stages.checked_result import bytes_of
from portbook.stages.ports import LARGE_BYTES
from portbook.testing import TestClient

NAN, INFINITY = float("nan"), float("inf")

# As a part of a small result, and of one that is searched in another way.
PADDINGS = pytest.mark.parametrize("padding", ["", "x" * (LARGE_BYTES + 1)], ids=["small", "large"])


@PADDINGS
@pytest.mark.parametrize("value", [NAN, [None, INFINITY], {"a": (-INFINITY,)}], ids=str)
def test_a_number_that_is_not_finite_is_no_result(value: Any, padding: str) -> None:
    with pytest.raises(Failed) as raised:
        bytes_of([padding, value])
    assert raised.value.findings[0].message == "the value has a number that is not finite"


@PADDINGS
@pytest.mark.parametrize("value", [None, "null", [1.5, None], (None,), 2**70], ids=str)
def test_what_json_has_is_written(value: Any, padding: str) -> None:
    assert bytes_of([padding, value]).startswith(b'["' + padding.encode())


@PADDINGS
def test_a_caller_never_gets_null_for_a_number(padding: str) -> None:
    toolset = Toolset("numbers")

    @toolset.tool(effect="read")
    def ratio() -> Any:
        return {"note": padding, "ratio": NAN}

    with TestClient(toolset) as client:
        assert client.call("ratio").reason == "BAD_RESULT"
