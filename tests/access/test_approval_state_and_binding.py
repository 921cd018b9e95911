"""What an approval covers: its binding, the ladder of refusals, and what can become of a ticket."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.access.approval_state_and_binding import (
    DECISIONS,
    TRANSITIONS,
    Ask,
    State,
    Ticket,
    Undecidable,
    as_json,
    binding,
    decided,
    is_id,
    refuse,
    seen,
)
from portbook.canonical import canonical_bytes
from portbook.clock import later, until
from portbook.errors import Reason

KEY = b"k" * 32
ASKED = "2026-01-02T03:04:05.678Z"
EXPIRES = "2026-01-02T04:04:05.678Z"
NOW = "2026-01-02T03:30:00.000Z"

ASK = Ask(
    tool="refund",
    arguments={"order": "7", "cents": 20_000, "card": "4111"},
    shown={"order": "7", "cents": 20_000, "card": "[redacted]"},
    tool_digest="tool-1",
    policy_digest="policy-1",
    caller="ada",
    session="s-1",
    rule="large refunds need a person",
    place="portbook.toml:9",
)


def ticket(state: State = State.APPROVED, **changes: Any) -> Ticket:
    made = Ticket(
        id="ticket-1",
        state=state,
        binding=binding(KEY, ASK),
        tool=ASK.tool,
        shown=ASK.shown,
        tool_digest=ASK.tool_digest,
        policy_digest=ASK.policy_digest,
        caller=ASK.caller,
        session=ASK.session,
        rule=ASK.rule,
        place=ASK.place,
        asked_at=ASKED,
        expires_at=EXPIRES,
    )
    return made._replace(**changes)


def verdict(found: Ticket | None, ask: Ask = ASK, now: str = NOW, presented: str = "ticket-1") -> Any:
    refusal = refuse(found, ask, binding(KEY, ask), now, presented)
    return None if refusal is None else (refusal.reason, dict(refusal.details))


def refused(why: str) -> Any:
    reason = Reason.APPROVAL_DENIED if why == "denied" else Reason.APPROVAL_REFUSED
    return reason, {"approval_id": "ticket-1", "why": why}


REQUIRED = (Reason.APPROVAL_REQUIRED, {"approval_id": "ticket-1", "expires_at": EXPIRES})

# -- binding

BOUND = {
    "tool": "refund_all",
    "arguments": {**ASK.arguments, "cents": 20_001},
    "tool_digest": "tool-2",
    "policy_digest": "policy-2",
    "caller": "bob",
}
UNBOUND = {"shown": {}, "session": "s-2", "rule": "another", "place": "portbook.toml:10"}


def test_every_part_of_an_ask_is_bound_or_known_not_to_be() -> None:
    assert set(Ask._fields) == {*BOUND, *UNBOUND}


@pytest.mark.parametrize("name", BOUND)
def test_the_binding_changes_with_what_the_approval_rests_on(name: str) -> None:
    assert binding(KEY, ASK._replace(**{name: BOUND[name]})) != binding(KEY, ASK)


@pytest.mark.parametrize("name", UNBOUND)
def test_the_binding_does_not_change_with_the_rest(name: str) -> None:
    assert binding(KEY, ASK._replace(**{name: UNBOUND[name]})) == binding(KEY, ASK)


def test_the_binding_is_keyed() -> None:
    assert binding(b"another", ASK) != binding(KEY, ASK)


def test_the_binding_does_not_depend_on_the_order_of_members() -> None:
    turned = dict(reversed(ASK.arguments.items()))
    assert binding(KEY, ASK._replace(arguments=turned)) == binding(KEY, ASK)


def test_text_cannot_move_from_one_part_to_the_next() -> None:
    one = ASK._replace(tool="ab", tool_digest="c")
    other = ASK._replace(tool="a", tool_digest="bc")
    assert binding(KEY, one) != binding(KEY, other)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_ARGUMENTS = st.dictionaries(st.text(), _JSON, max_size=3)


@given(_ARGUMENTS, _ARGUMENTS)
def test_two_calls_have_one_binding_only_if_their_arguments_are_the_same_bytes(one: Any, other: Any) -> None:
    is_same = binding(KEY, ASK._replace(arguments=one)) == binding(KEY, ASK._replace(arguments=other))
    assert is_same == (canonical_bytes(one) == canonical_bytes(other))


# -- the ladder


def case(name: str, found: Ticket | None, expected: Any, ask: Ask = ASK, now: str = NOW) -> Any:
    return pytest.param(found, ask, now, expected, id=name)


@pytest.mark.covers("002.approval.binding")
@pytest.mark.parametrize(
    ("found", "ask", "now", "expected"),
    [
        case("approved, and the very call", ticket(), None),
        case("one millisecond before it expires", ticket(), None, now="2026-01-02T04:04:05.677Z"),
        case("from another session", ticket(), None, ASK._replace(session="s-2")),
        case("no such ticket", None, refused("unknown")),
        case("another caller's", ticket(caller="bob"), refused("unknown")),
        case("another caller's, pending", ticket(State.PENDING, caller="bob"), refused("unknown")),
        case("denied", ticket(State.DENIED), refused("denied")),
        case("running", ticket(State.RUNNING), refused("used")),
        case("done", ticket(State.DONE), refused("used")),
        case("failed", ticket(State.FAILED), refused("used")),
        case("unknown", ticket(State.UNKNOWN), refused("used")),
        case("expired, approved", ticket(), refused("expired"), now=EXPIRES),
        case("expired, pending", ticket(State.PENDING), refused("expired"), now=EXPIRES),
        case("another tool", ticket(), refused("tool"), ASK._replace(tool="refund_all")),
        case("the tool changed", ticket(), refused("tool"), ASK._replace(tool_digest="tool-2")),
        case("the policy changed", ticket(), refused("policy"), ASK._replace(policy_digest="policy-2")),
        case("other arguments", ticket(), refused("arguments"), ASK._replace(arguments={"order": "7"})),
        case("undecided", ticket(State.PENDING), REQUIRED),
    ],
)
def test_a_ticket_lets_its_own_call_run_and_no_other(
    found: Ticket | None, ask: Ask, now: str, expected: Any
) -> None:
    assert verdict(found, ask, now) == expected


def test_the_rungs_are_climbed_in_their_order() -> None:
    # Everything is wrong at once; each rung that is mended uncovers the next.
    found = ticket(
        State.DENIED, caller="bob", tool="refund_all", tool_digest="tool-2", policy_digest="policy-2"
    )
    found = found._replace(binding="0" * 64)
    now, met = EXPIRES, list[str]()
    mendings: list[dict[str, Any]] = [
        {"caller": "ada"},
        {"state": State.DONE},
        {"state": State.APPROVED},
        {"expires_at": "2026-01-02T05:00:00.000Z"},
        {"tool": "refund", "tool_digest": "tool-1"},
        {"policy_digest": "policy-1"},
        {"binding": binding(KEY, ASK), "state": State.PENDING},
    ]
    for mending in mendings:
        met.append(verdict(found, now=now)[1]["why"])
        found = found._replace(**mending)
    assert met == ["unknown", "denied", "used", "expired", "tool", "policy", "arguments"]
    assert verdict(found, now=now)[0] is Reason.APPROVAL_REQUIRED


def test_nobody_waits_for_a_decision_that_would_not_help() -> None:
    assert verdict(ticket(State.PENDING), ASK._replace(arguments={})) == refused("arguments")


def test_a_refusal_does_not_tell_whether_another_callers_ticket_exists() -> None:
    assert verdict(ticket(caller="bob")) == verdict(None)


def test_an_approval_is_asked_for_anew_but_a_wait_can_be_repeated() -> None:
    pending = refuse(ticket(State.PENDING), ASK, binding(KEY, ASK), NOW)
    denied = refuse(ticket(State.DENIED), ASK, binding(KEY, ASK), NOW)
    assert pending is not None
    assert denied is not None
    assert (pending.is_retryable, denied.is_retryable) == (True, False)


@pytest.mark.parametrize("text", ["", "x" * 65, "a b", "a\n", "ticket-1\n", "é", "../a", "\x1b[2J", "a'--"])
def test_what_cannot_be_an_id_is_not_repeated(text: str) -> None:
    assert not is_id(text)
    assert verdict(None, presented=text) == (Reason.APPROVAL_REFUSED, {"why": "unknown"})


# -- states


def test_every_state_says_what_can_follow_and_only_states_follow() -> None:
    assert set(TRANSITIONS) == set(State)
    assert set().union(*TRANSITIONS.values()) <= set(State)


@pytest.mark.parametrize(
    "state",
    [State.DENIED, State.DONE, State.FAILED, State.UNKNOWN, State.EXPIRED],
)
def test_what_has_ended_stays_so(state: State) -> None:
    assert TRANSITIONS[state] == frozenset()


def test_only_an_approved_call_runs() -> None:
    assert [state for state in State if State.RUNNING in TRANSITIONS[state]] == [State.APPROVED]


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("is_owner_alive", [True, False])
@pytest.mark.parametrize("now", [NOW, EXPIRES, "2027-01-01T00:00:00.000Z"])
def test_time_and_death_make_only_transitions_of_the_table(
    state: State, is_owner_alive: bool, now: str
) -> None:
    after = seen(ticket(state), now, is_owner_alive=is_owner_alive).state
    assert after is state or after in TRANSITIONS[state]


def test_a_running_call_does_not_expire() -> None:
    assert seen(ticket(State.RUNNING), "2027-01-01T00:00:00.000Z").state is State.RUNNING


def test_a_call_whose_process_died_is_unknown() -> None:
    assert seen(ticket(State.RUNNING), NOW, is_owner_alive=False).state is State.UNKNOWN


LATE = [state for state in State if state not in (State.PENDING, State.APPROVED)]


@pytest.mark.parametrize(
    ("state", "decision", "expected"),
    [
        (State.PENDING, "approve", State.APPROVED),
        (State.PENDING, "deny", State.DENIED),
        (State.APPROVED, "deny", State.DENIED),
        (State.APPROVED, "approve", None),
        *((state, decision, None) for state in LATE for decision in DECISIONS),
    ],
)
def test_a_decision_is_possible_until_the_call_runs(
    state: State, decision: str, expected: State | None
) -> None:
    found = ticket(state)
    if expected is None:
        with pytest.raises(Undecidable) as caught:
            decided(found, decision, now=NOW, by="eve")
        assert caught.value.state is state
        return
    after = decided(found, decision, now=NOW, by="eve", reason="because")
    assert expected in TRANSITIONS[state]
    assert after == found._replace(state=expected, decided_at=NOW, decided_by="eve", reason="because")


@pytest.mark.parametrize("state", [State.PENDING, State.APPROVED])
def test_what_has_expired_cannot_be_decided(state: State) -> None:
    with pytest.raises(Undecidable, match="expired"):
        decided(ticket(state), "deny", now=EXPIRES, by="eve")


def test_what_does_not_exist_cannot_be_decided() -> None:
    with pytest.raises(Undecidable, match="no such approval") as caught:
        decided(None, "approve", now=NOW, by="eve")
    assert caught.value.state is None


def test_a_word_that_is_no_decision_decides_nothing() -> None:
    with pytest.raises(KeyError):
        decided(ticket(State.PENDING), "maybe", now=NOW, by="eve")


# -- time, and what people see


@given(
    st.integers(min_value=0, max_value=10**11),
    st.integers(min_value=-(10**9), max_value=10**9),
)
def test_times_are_text_that_compares_like_time(seconds: int, milliseconds: int) -> None:
    now = later("2026-01-02T03:04:05.678Z", seconds)
    then = later(now, milliseconds / 1000)
    assert len(then) == len(now) == len(ASKED)
    assert (then > now) == (milliseconds > 0)
    assert until(now, then) == pytest.approx(milliseconds / 1000, abs=1e-6)


def test_operators_see_the_redacted_arguments_and_no_digest_of_the_real_ones() -> None:
    shown = json.dumps(as_json(ticket()))
    assert "[redacted]" in shown
    assert "4111" not in shown
    assert binding(KEY, ASK) not in shown
