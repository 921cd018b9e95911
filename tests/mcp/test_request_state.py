from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from portbook.mcp.rounds_and_request_state import SignedStates

JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
)


class Hand:
    """A clock that stands where it was put."""

    def __init__(self, now: str = "2026-08-01T12:00:00.000Z") -> None:
        self.at = now

    def now(self) -> str:
        return self.at

    def tick(self) -> float:
        return 0.0


@given(JSONS, st.dictionaries(st.text(), JSONS, max_size=3))
def test_what_is_sealed_comes_out_again_for_the_same_call(bound: object, answers: dict[str, object]) -> None:
    states = SignedStates(lambda: b"key", Hand())
    assert states.open(bound, states.seal(bound, answers)) == answers  # type: ignore[arg-type]


def test_another_call_another_key_and_another_hour_open_nothing() -> None:
    clock = Hand()
    states = SignedStates(lambda: b"key", clock)
    text = states.seal(["call"], {"a": {}})
    assert states.open(["another"], text) is None
    assert SignedStates(lambda: b"other", clock).open(["call"], text) is None
    clock.at = "2026-08-01T12:59:59.999Z"
    assert states.open(["call"], text) == {"a": {}}
    clock.at = "2026-08-01T13:00:00.000Z"
    assert states.open(["call"], text) is None


@given(st.text(max_size=200))
def test_whatever_is_sent_opens_nothing_and_breaks_nothing(text: str) -> None:
    assert SignedStates(lambda: b"key", Hand()).open([], text) is None
