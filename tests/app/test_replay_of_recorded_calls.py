"""What another policy would have said of recorded calls, and what nobody can tell without arguments."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.app.replay_of_recorded_calls import PolicyTrial, Replayed, replay, subject_of
from portbook.model import Arrival, Call, Caller, CallerContext, Done, JSONObject
from portbook.policy import BadPolicy, Limits, Policy, PolicyInput, read_policy
from portbook.settings import BadSettings, Settings, load_settings
from portbook.stages.recorder import both_views
from portbook.stages.state import Trail
from portbook.tools.catalog import Catalog
from portbook.tools.http_operation import HttpOperation
from portbook.tools.spec import Effect, ToolSpec

RECORD: dict[str, Any] = {
    "tool_id": "mcp.tool:refund",
    "effect": "write",
    "caller": "ada",
    "session_id": "s-1",
    "attempt": 2,
    "input_bytes": 13,
}


def policy(*rules: dict[str, Any], **limits: Any) -> Policy:
    return read_policy(Limits(**limits), rules, [], lambda path: f"p.toml:{path[-1]}")


def rule(action: str, **conditions: Any) -> dict[str, Any]:
    return {"name": f"{action} it", "action": action, **conditions}


LARGE = {"/cents": {"minimum": 10_000}}
SMALL = {"/cents": {"maximum": 100}}


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def subject(**changes: Any) -> PolicyInput:
    found = subject_of({**RECORD, **changes})
    assert found is not None
    return found


def test_a_record_tells_all_of_a_call_that_policy_looks_at() -> None:
    assert subject() == PolicyInput("refund", Effect.WRITE, "ada", {}, {}, 13, 2, "s-1")
    assert subject(arguments={"cents": 5}).arguments == {"cents": 5}
    assert subject(session_id=None, caller=None)[2:] == ("", {}, {}, 13, 2, None, None, "tool", ())


def test_a_record_of_an_http_tool_tells_where_it_would_go() -> None:
    found = subject(endpoint="https://api.example:8443/v1/orders/{id}", method="GET").operation
    assert found is not None
    assert (found.method, found.domain) == ("GET", "api.example:8443")
    assert subject(endpoint="/orders", method="GET").operation.destination is None  # type: ignore[union-attr]


def test_what_the_pipeline_records_of_a_call_is_read_back_as_that_call() -> None:
    operation = HttpOperation("orders", "http://127.0.0.1:9000/api", "POST", "/orders/{id}")
    tool = Catalog([ToolSpec("orders.add", "", {}, True, Effect.WRITE, operation=operation)]).find(
        "orders.add"
    )
    call = Call(
        Arrival("http", "/execute"),
        "execute",
        "orders.add",
        {"id": 1},
        8,
        CallerContext(attempt=3, session="s"),
        None,
        {},
    )
    trail = Trail(caller=Caller("ada"), tool=tool)
    _, execution = both_views(
        call, Done(b"1"), (b"r", b"t", b"s"), trail, ts=b"", duration_us=1, deterministic=False
    )
    record = json.loads(execution)
    found = subject_of(record)
    assert found is not None
    assert found[:2] + found[2:3] + found[5:8] == ("orders.add", Effect.WRITE, "ada", 8, 3, "s")
    assert found.operation is not None
    assert (found.operation.domain, found.operation.method) == (operation.domain, operation.method)
    assert found.operation.endpoint == operation.endpoint


@pytest.mark.parametrize(
    "changes",
    [
        case("a message that named no tool", {"tool_id": None}),
        case("a tool that was unknown", {"effect": None}),
        case("an effect of another version", {"effect": "explosive"}),
        case("a tool that is no text", {"tool_id": 5}),
        case("an effect that is no text", {"effect": ["write"]}),
    ],
)
def test_a_record_of_what_policy_never_decided_on_is_of_no_call(changes: dict[str, Any]) -> None:
    assert subject_of({**RECORD, **changes}) is None


def test_a_record_with_odd_members_is_read_as_far_as_it_goes() -> None:
    odd = subject(arguments=[1], attempt="x", input_bytes="y", session_id=5, endpoint=5, method="GET")
    assert odd == PolicyInput("refund", Effect.WRITE, "ada", {}, {}, 0)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        case("nothing said", [], Replayed("allow", "default (p.toml:default)")),
        case("a rule without a condition", [rule("deny")], Replayed("deny", "deny it (p.toml:0)")),
        case("a condition that may have been met", [rule("deny", where=LARGE)], Replayed("unknown", "")),
        case("allowed by a rule or by default", [rule("allow", where=LARGE)], Replayed("allow", "")),
        case(
            "the same decision either way, by one rule or another",
            [rule("ask", where=LARGE), {**rule("ask"), "name": "ask for all"}],
            Replayed("ask", ""),
        ),
        case(
            "denied either way",
            [rule("deny", tools=["refund"]), rule("ask", where=LARGE)],
            Replayed("deny", "deny it (p.toml:0)"),
        ),
        case(
            "a condition on another tool",
            [rule("deny", tools=["wipe"], where=LARGE)],
            Replayed("allow", "default (p.toml:default)"),
        ),
    ],
)
def test_without_arguments_a_decision_is_told_only_where_it_is_the_same_either_way(
    rules: list[dict[str, Any]], expected: Replayed
) -> None:
    assert replay(policy(*rules), subject(), has_arguments=False) == expected


@pytest.mark.parametrize(
    ("rules", "limits"),
    [
        case("deny or allow", [rule("deny", where=LARGE), rule("allow", where=SMALL)], {"default": "deny"}),
        case("ask or allow", [rule("ask", where=LARGE), rule("allow", where=SMALL)], {"approval": "always"}),
    ],
)
def test_conditions_are_not_taken_to_be_met_all_or_none(
    rules: list[dict[str, Any]], limits: dict[str, Any]
) -> None:
    assert replay(policy(*rules, **limits), subject(), has_arguments=False) == Replayed("unknown", "")


@given(
    st.lists(
        st.tuples(st.sampled_from(["deny", "ask", "allow"]), st.none() | st.integers(0, 3)),
        max_size=4,
    ),
    st.sampled_from(["allow", "deny"]),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_what_is_told_without_arguments_is_what_was_decided_with_them(
    written: list[tuple[str, int | None]], default: str, given_flags: list[bool]
) -> None:
    tables = [
        {
            "name": f"{action} {number}",
            "action": action,
            "where": {} if flag is None else {f"/{flag}": {"const": True}},
        }
        for number, (action, flag) in enumerate(written)
    ]
    try:
        tried = policy(*tables, default=default)
    except BadPolicy:  # a rule that another one hides
        return
    arguments = {str(number): flag for number, flag in enumerate(given_flags)}
    decided = replay(tried, subject(arguments=arguments), has_arguments=True)
    told = replay(tried, subject(), has_arguments=False)
    assert told.decision in (decided.decision, "unknown")
    assert told.rule in (decided.rule, "")


@pytest.mark.parametrize(("cents", "decision"), [(9_999, "allow"), (10_000, "ask")])
def test_with_arguments_a_condition_decides(cents: int, decision: str) -> None:
    found = replay(policy(rule("ask", where=LARGE)), subject(arguments={"cents": cents}), has_arguments=True)
    assert found.decision == decision


@pytest.mark.parametrize("arguments", [{}, {"cents": "[redacted]"}, {"cents": "[sha256:0123456789abcdef]"}])
def test_what_was_left_out_or_taken_out_of_the_record_is_unknown(arguments: JSONObject) -> None:
    asking = policy(rule("ask", where=LARGE))
    assert replay(asking, subject(arguments=arguments), has_arguments=True).decision == "unknown"


@pytest.mark.parametrize(
    ("limits", "decision"),
    [
        case("its size", {"max_payload_bytes": 12}, "deny"),
        case("its attempt", {"max_attempts": 1}, "deny"),
        case("its effect", {"approval": "writes"}, "ask"),
        case("none", {"max_payload_bytes": 13, "max_attempts": 2}, "allow"),
    ],
)
def test_limits_are_applied_to_what_was_recorded(limits: dict[str, Any], decision: str) -> None:
    assert replay(policy(**limits), subject(), has_arguments=False).decision == decision


def test_a_record_does_not_have_the_tags_of_a_tool() -> None:
    tagged = policy(rule("deny", tags=["money"]))
    assert replay(tagged, subject(), has_arguments=True).decision == "unknown"
    certain = policy(rule("deny", tags=["money"]), {**rule("deny", tools=["refund"]), "name": "no refunds"})
    assert replay(certain, subject(), has_arguments=True).decision == "deny"


DENY = '[server]\nport = 1\n[[policy.rules]]\nname = "no"\naction = "deny"\ntools = ["drop*"]\n'


def settings_in(folder: Path) -> Settings:
    return load_settings(None, {}, {}, folder)


def trial_of(folder: Path, text: str = DENY) -> PolicyTrial:
    return PolicyTrial.of(Policy(), settings_in(folder), text, ())


def record(tool: str, second: int) -> dict[str, Any]:
    return {
        "timestamp": f"2026-01-01T00:00:{second:02}.000Z", "tool_id": f"mcp.tool:{tool}", "effect": "write",
        "caller": "ada", "attempt": 1, "input_bytes": 2, "arguments": {},
    }  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "mcp_server" / "execution"
    folder.mkdir(parents=True)
    for name, seconds in (("1", range(10)), ("2", range(10, 50))):
        lines = [json.dumps(record("drop" if second % 2 else "keep", second)) for second in seconds]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\nno record\n")
    return tmp_path / "runs"


def test_every_recorded_call_is_decided_by_both(tmp_path: Path, log: Path) -> None:
    found: dict[str, Any] = trial_of(tmp_path).run(log)
    assert (found["replayed"], found["complete"], found["more"]) == (50, True, 0)
    assert found["oldest"] == "2026-01-01T00:00:00.000Z"
    (change,) = found["changes"]
    assert (change["tool"], change["calls"], change["new"]["decision"]) == ("drop", 25, "deny")
    assert change["new"]["rule"] == "no (portbook.toml:3)"
    assert found["ignored"] == ["server"]


def test_only_calls_between_two_times_count(tmp_path: Path, log: Path) -> None:
    found = trial_of(tmp_path).run(log, "2026-01-01T00:00:05.000Z", "2026-01-01T00:00:12.000Z")
    assert (found["replayed"], found["oldest"]) == (7, "2026-01-01T00:00:05.000Z")


def test_it_ends_in_time_and_says_how_far_it_came(tmp_path: Path, log: Path) -> None:
    more = "\n".join(json.dumps(record("keep", 50 + number // 100)) for number in range(900))
    (log / "mcp_server" / "execution" / "3.jsonl").write_text(more + "\n")
    seconds = count(0, 6)
    found = trial_of(tmp_path).run(log, tick=lambda: next(seconds))
    assert (found["replayed"], found["complete"]) == (400, False)
    assert found["oldest"] == "2026-01-01T00:00:55.000Z"  # the newest came first


def test_a_policy_that_could_not_be_put_into_force_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"^policy:2:1: policy\.rules\[0\]\.action must be one of"):
        trial_of(tmp_path, '[[policy.rules]]\naction = "forbid"\nname = "x"\n')
