"""`portbook approvals` alone: the calls that wait, and decisions from the list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from portbook.access.approval_state_and_binding import Ask, State
from portbook.clock import SystemClock
from portbook.errors import Refused
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.sqlite_store import Store
from support.portbook_process import run
from support.pseudo_terminal import on_a_terminal


@pytest.fixture
def approvals(tmp_path: Path) -> Iterator[ApprovalStore]:
    store = Store(tmp_path / "portbook.db")
    made = ApprovalStore(store, SystemClock())
    yield made
    made.close()
    store.close()


def asked(approvals: ApprovalStore, cents: int) -> str:
    arguments = {"cents": cents}
    wanted = Ask("refund", arguments, arguments, "t", "p", "ada", "s-1", "large ones", "portbook.toml:9")
    with pytest.raises(Refused) as caught:
        asyncio.run(approvals.admit(wanted))
    return str(caught.value.details["approval_id"])


def test_alone_it_lists_what_waits_with_a_header_and_arguments(
    approvals: ApprovalStore, tmp_path: Path
) -> None:
    first, second = asked(approvals, 100), asked(approvals, 200)
    asyncio.run(approvals.decide(first, "deny", by="eve"))
    shown, code = on_a_terminal(tmp_path, "approvals", typed="\n")
    header, line, question = shown.strip().splitlines()[:3]
    assert code == 0
    assert header.split() == ["#", "id", "expires", "caller", "tool", "arguments"]
    assert line.split()[:2] == ["1", second[:8]]
    assert line.endswith('{"cents": 200}')
    assert question.startswith("a NUMBER approves, d NUMBER denies")
    assert approvals.ticket(second).state is State.PENDING  # type: ignore[union-attr]
    listed = json.loads(run("approvals", cwd=tmp_path).out)["approvals"]
    assert [each["approval_id"] for each in listed] == [second]


@pytest.mark.parametrize(("word", "state"), [("a", State.APPROVED), ("d", State.DENIED)])
def test_a_number_decides_the_line_that_was_shown(
    word: str, state: State, approvals: ApprovalStore, tmp_path: Path
) -> None:
    older, newer = asked(approvals, 100), asked(approvals, 200)
    shown, code = on_a_terminal(tmp_path, "approvals", typed=f"{word} 2\n\n")
    assert code == 0
    assert f"state:    {state}" in shown
    assert approvals.ticket(older).state is state  # type: ignore[union-attr]
    assert approvals.ticket(newer).state is State.PENDING  # type: ignore[union-attr]


def test_all_that_wait_are_decided_one_after_the_other(approvals: ApprovalStore, tmp_path: Path) -> None:
    ids = [asked(approvals, 100), asked(approvals, 200)]
    shown, code = on_a_terminal(tmp_path, "approvals", typed="a 2\nno\nd 1\n")
    assert code == 0
    assert shown.strip().endswith(
        "no call waits for approval; `portbook approvals list` lists the decided ones"
    )
    states = [approvals.ticket(each).state for each in ids]  # type: ignore[union-attr]
    assert states == [State.APPROVED, State.DENIED]


@pytest.mark.parametrize(
    ("typed", "state"), [("a 1\ny\n", State.APPROVED), ("a 1\n\n\n", State.PENDING), ("d 1\n", State.DENIED)]
)
@pytest.mark.covers("design.approvals.seen-whole")
def test_a_call_that_the_table_cuts_is_approved_once_all_of_it_was_seen(
    typed: str, state: State, approvals: ApprovalStore, tmp_path: Path
) -> None:
    arguments = {"order": "7" * 200, "force": True}
    wanted = Ask("refund", arguments, arguments, "t", "p", "ada", "s-1", "large ones", "portbook.toml:9")
    with pytest.raises(Refused) as caught:
        asyncio.run(approvals.admit(wanted))
    shown, code = on_a_terminal(tmp_path, "approvals", typed=typed)
    assert code == 0
    before, asked_again, _ = shown.partition("approve this call? [y/N]")
    assert bool(asked_again) == typed.startswith("a")
    assert '"force": true' in before  # also where it is denied, which is told afterwards
    assert approvals.ticket(str(caught.value.details["approval_id"])).state is state  # type: ignore[union-attr]


@pytest.mark.parametrize("typed", ["a 3", "x 1", "a", "1"])
def test_what_names_no_line_decides_nothing(typed: str, approvals: ApprovalStore, tmp_path: Path) -> None:
    ids = [asked(approvals, 100), asked(approvals, 200)]
    shown, code = on_a_terminal(tmp_path, "approvals", typed=f"{typed}\n\n")
    assert code == 0
    assert "portbook: error: write a or d and a number from 1 to 2, such as: a 1" in shown
    assert {approvals.ticket(each).state for each in ids} == {State.PENDING}  # type: ignore[union-attr]


def test_an_id_may_be_shortened_while_it_is_unique(approvals: ApprovalStore, tmp_path: Path) -> None:
    whole = asked(approvals, 100)
    assert json.loads(run("approvals", "show", whole[:6], cwd=tmp_path).out)["approval_id"] == whole
    assert json.loads(run("approvals", "approve", whole[:4], cwd=tmp_path).out)["state"] == "approved"
    assert run("approvals", "deny", whole[:3], cwd=tmp_path).code == 1
    assert approvals.ticket(whole).state is State.APPROVED  # type: ignore[union-attr]


def test_a_short_id_of_several_decides_none(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")
    ids = iter(["owner", "abcd1111", "abcd2222"])
    approvals = ApprovalStore(store, SystemClock(), draw_id=lambda: next(ids))
    asked(approvals, 100)
    asked(approvals, 200)
    finished = run("approvals", "approve", "abcd", cwd=tmp_path)
    assert (finished.code, finished.err) == (
        1,
        "portbook: error: 2 approvals begin with this id; write more of it\n",
    )
    assert run("approvals", "approve", "abcd1", cwd=tmp_path).code == 0
    approvals.close()
    store.close()
