"""What an exception says to the caller: everything that a ToolError has, the code of others, nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from portbook import NotFound, ToolError
from portbook.tools.tool_error_text import BadStatement, StatedError, stated_error


class Coded(Exception):
    def __init__(self, code: Any) -> None:
        super().__init__("canary")
        self.code = code
        self.data = "canary"


class Broken(ToolError):
    @property
    def code(self) -> str:
        raise RuntimeError

    @code.setter
    def code(self, value: object) -> None: ...

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "stated"),
    [
        (ToolError(), StatedError()),
        (ToolError("m", code="C", data=[1], retryable=False), StatedError("m", "C", [1], False)),
        (NotFound("m", data={"a": None}), StatedError("m", None, {"a": None})),
        (ToolError("m" * 3000), StatedError("m" * 2000)),
        (Broken(), StatedError()),
        (Coded("QUOTA.EXCEEDED"), StatedError(code="QUOTA.EXCEEDED")),
        *[(Coded(code), None) for code in ("", "a sentence", "c" * 201, "bad\n", 404, None, ["C"])],
        (SystemExit("canary"), None),
        (ValueError("canary"), None),
    ],
)
def test_only_what_is_meant_is_stated(error: BaseException, stated: StatedError | None) -> None:
    assert stated_error(error) == stated


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ToolError(data={1: 2}), "the data of its error is not JSON"),
        (ToolError(data=float("nan")), "the data of its error is not JSON"),
        (ToolError(data=object()), "the data of its error is not JSON"),
        (ToolError(code=404), "the code of its error is not a string of 1 to 200 characters"),  # type: ignore[arg-type]
        (ToolError(code=""), "the code of its error is not a string of 1 to 200 characters"),
        (ToolError(retryable="no"), "the retryable of its error is not true, false or None"),  # type: ignore[arg-type]
    ],
)
def test_a_tool_error_that_cannot_be_passed_on_says_why(error: ToolError, said: str) -> None:
    with pytest.raises(BadStatement, match=said):
        stated_error(error)


def test_data_that_contains_itself_or_is_nested_too_deep_is_not_json() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(230):
        deep = [deep]
    for data in (loop, deep):
        with pytest.raises(BadStatement, match="not JSON"):
            stated_error(ToolError(data=data))


def test_what_the_tool_keeps_cannot_change_what_was_stated() -> None:
    data = {"a": 1}
    stated = stated_error(ToolError(data=data))
    data["a"] = 2
    assert stated is not None
    assert stated.data == {"a": 1}
