"""What `params._meta` may say beside a call: each member, and that a wrong one is as good as none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.dialects.portbook_meta import MAX_WAIT_MS, NO_CONTROLS, RequestMeta, controls_of

TEXTS = {
    "portbook/approval_id": "approval",
    "portbook/session_id": "session",
    "portbook/correlation_id": "correlation",
}
NUMBERS = {"portbook/wait_ms": "wait_ms", "portbook/agent_step": "step", "portbook/attempt": "attempt"}


def test_nothing_said_is_nothing_controlled() -> None:
    assert controls_of({}) is NO_CONTROLS
    assert controls_of({"somebody/else": 1, "approval_id": "x"}) == NO_CONTROLS


def test_everything_said_at_once() -> None:
    meta: dict[str, Any] = {
        "portbook/approval_id": "a",
        "portbook/wait_ms": 500,
        "portbook/session_id": "s",
        "portbook/correlation_id": "c",
        "portbook/agent_step": 0,
        "portbook/attempt": 2,
        "traceparent": "of others",
    }
    assert controls_of(meta) == RequestMeta("a", 500, "s", "c", 0, 2)


@pytest.mark.parametrize(("member", "field"), TEXTS.items())
@pytest.mark.parametrize("value", ["", "x" * 257, 1, True, None, ["x"], {"x": 1}])
def test_a_text_of_another_type_or_length_is_as_good_as_none(member: str, field: str, value: Any) -> None:
    assert getattr(controls_of({member: value}), field) is None
    assert getattr(controls_of({member: "x" * 256}), field) == "x" * 256


@pytest.mark.parametrize(("member", "field"), NUMBERS.items())
@pytest.mark.parametrize("value", [-1, 1.0, 1.5, True, False, None, "1", [1], 2**53, 10**40])
def test_a_number_that_is_no_count_is_as_good_as_none(member: str, field: str, value: Any) -> None:
    assert getattr(controls_of({member: value}), field) == getattr(NO_CONTROLS, field)


def test_nobody_waits_longer_than_the_limit() -> None:
    assert controls_of({"portbook/wait_ms": MAX_WAIT_MS}).wait_ms == MAX_WAIT_MS
    assert controls_of({"portbook/wait_ms": MAX_WAIT_MS + 1}).wait_ms == MAX_WAIT_MS


@given(
    st.dictionaries(
        st.sampled_from([*TEXTS, *NUMBERS]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300), st.lists
        ),
    )
)
def test_whatever_is_said_makes_controls_of_the_right_types(meta: Any) -> None:
    found = controls_of(meta)
    for field in TEXTS.values():
        assert isinstance(getattr(found, field), str | None)
    assert 0 <= found.wait_ms <= MAX_WAIT_MS
    assert all(number is None or 0 <= number < 2**53 for number in (found.step, found.attempt))
