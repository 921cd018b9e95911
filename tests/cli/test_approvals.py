"""`portbook approvals`: what operators see and decide at a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.access.approval_state_and_binding import Ask, State
from portbook.clock import SystemClock
from portbook.errors import Refused
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.sqlite_store import Store
from support import forked_process
from support.portbook_process import PORTBOOK, Finished, environment, run

HOSTILE = "\x1b[2J\u202egnp\n\x9b31m\u200b"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "portbook.db")
    yield made
    made.close()


@pytest.fixture
def approvals(store: Store) -> Iterator[ApprovalStore]:
    made = ApprovalStore(store, SystemClock())
    yield made
    made.close()


def ask(cents: int = 20_000, **shown: Any) -> Ask:
    arguments = {"cents": cents, **shown}
    rule, place = "large refunds need a person", "portbook.toml:9"
    return Ask("refund", arguments, arguments, "t", "p", "ada", "s-1", rule, place)


def asked(approvals: ApprovalStore, wanted: Ask | None = None) -> str:
    with pytest.raises(Refused) as caught:
        asyncio.run(approvals.admit(wanted or ask()))
    return str(caught.value.details["approval_id"])


def on_a_terminal(*arguments: str, cwd: Path) -> str:
    controller, terminal = os.openpty()
    forked_process.run([*PORTBOOK, *arguments], stdout=terminal, cwd=cwd, env=environment(), check=False)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # what a terminal says when all is read
        while read := os.read(controller, 65536):
            shown += read
    os.close(controller)
    return shown.decode().replace("\r\n", "\n")


def data(finished: Finished) -> Any:
    assert finished.code == 0, finished.err
    return json.loads(finished.out)


@pytest.mark.covers("002.approval.cli")
def test_an_operator_lists_shows_approves_and_the_call_runs(approvals: ApprovalStore, tmp_path: Path) -> None:
    approval_id = asked(approvals)
    [listed] = data(run("approvals", "list", cwd=tmp_path))["approvals"]
    assert (listed["approval_id"], listed["state"], listed["arguments"]) == (
        approval_id,
        "pending",
        {"cents": 20_000},
    )
    assert data(run("approvals", "show", approval_id, cwd=tmp_path)) == listed
    approved = data(run("approvals", "approve", approval_id, "--reason", "it is right", cwd=tmp_path))
    user = pwd.getpwuid(os.getuid()).pw_name
    assert (approved["state"], approved["decided_by"]) == ("approved", user)
    assert approved["reason"] == "it is right"
    assert asyncio.run(approvals.admit(ask(), approval_id)) == approval_id


def test_what_is_denied_never_runs(approvals: ApprovalStore, tmp_path: Path) -> None:
    approval_id = asked(approvals)
    assert data(run("approvals", "deny", approval_id, cwd=tmp_path))["state"] == "denied"
    with pytest.raises(Refused) as caught:
        asyncio.run(approvals.admit(ask(), approval_id))
    assert caught.value.details["why"] == "denied"


def test_the_store_is_the_one_that_the_settings_name(approvals: ApprovalStore, tmp_path: Path) -> None:
    approval_id = asked(approvals)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "other.toml").write_text('[store]\npath = "portbook.db"\n')
    assert data(run("approvals", "list", cwd=elsewhere))["approvals"] == []
    [listed] = data(run("approvals", "list", "--config", "../other.toml", cwd=elsewhere))["approvals"]
    assert listed["approval_id"] == approval_id
    assert [*elsewhere.iterdir()] == []


def test_a_list_can_be_of_one_state_and_short(approvals: ApprovalStore, tmp_path: Path) -> None:
    ids = [asked(approvals, ask(cents)) for cents in (1, 2, 3)]
    asyncio.run(approvals.decide(ids[1], "deny", by="eve"))

    def listed(*options: str) -> list[str]:
        found = data(run("approvals", "list", *options, cwd=tmp_path))["approvals"]
        return [each["approval_id"] for each in found]

    assert listed() == [*reversed(ids)]
    assert listed("--state", "pending") == [ids[2], ids[0]]
    assert listed("--limit", "1") == [ids[2]]
    assert run("approvals", "list", "--state", "gone", cwd=tmp_path).code == 2
    assert run("approvals", "list", "--limit", "0", cwd=tmp_path).code == 2


@pytest.mark.parametrize("verb", ["show", "approve", "deny"])
@pytest.mark.parametrize("approval_id", ["0" * 32, "no id at all"])
def test_what_nobody_asked_for_is_refused_and_leaves_nothing(
    verb: str, approval_id: str, tmp_path: Path
) -> None:
    finished = run("approvals", verb, approval_id, cwd=tmp_path)
    assert (finished.code, finished.out) == (1, b"")
    said = "there is no such approval; `portbook approvals list` shows the ids"
    assert finished.err == f"portbook: error: {said}\n"
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "state",
    [State.APPROVED, State.DENIED, State.RUNNING, State.DONE, State.UNKNOWN],
)
def test_what_was_decided_cannot_be_approved_again(
    state: State, approvals: ApprovalStore, store: Store, tmp_path: Path
) -> None:
    approval_id = asked(approvals)
    asyncio.run(approvals.decide(approval_id, "deny" if state is State.DENIED else "approve", by="eve"))
    if state in (State.RUNNING, State.DONE, State.UNKNOWN):
        asyncio.run(approvals.admit(ask(), approval_id))
    if state is State.DONE:
        approvals.finish(approval_id, is_done=True)
        store.submit(lambda _: None).result()
    if state is State.UNKNOWN:
        approvals.close()
    finished = run("approvals", "approve", approval_id, cwd=tmp_path)
    assert (finished.code, finished.out) == (1, b"")
    assert data(run("approvals", "show", approval_id, cwd=tmp_path))["state"] == state


def test_a_terminal_shows_what_is_approved_in_words(approvals: ApprovalStore, tmp_path: Path) -> None:
    approval_id = asked(approvals, ask(note="ä" * 300, password="[redacted]"))
    ticket = approvals.ticket(approval_id)
    assert ticket is not None
    line = f"{approval_id}  pending   {ticket.expires_at}  ada  refund\n"
    assert on_a_terminal("approvals", "list", cwd=tmp_path) == line
    shown = on_a_terminal("approvals", "approve", approval_id, "--reason", "fine", cwd=tmp_path)
    decided = approvals.ticket(approval_id)
    assert decided is not None
    assert shown.splitlines() == [
        f"approval: {approval_id}",
        "state:    approved",
        "tool:     refund",
        "caller:   ada",
        "session:  s-1",
        "rule:     large refunds need a person (portbook.toml:9)",
        f"asked:    {ticket.asked_at}",
        f"expires:  {ticket.expires_at}",
        f"decided:  {decided.decided_at} by {decided.decided_by}",
        "reason:   fine",
        "arguments:",
        "  {",
        '    "cents": 20000,',
        f'    "note": "{"ä" * 300}",',
        '    "password": "[redacted]"',
        "  }",
    ]


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["words", "JSON"])
def test_what_a_caller_sent_does_not_take_over_the_terminal(
    options: tuple[str, ...], approvals: ApprovalStore, tmp_path: Path
) -> None:
    wanted = ask(**{HOSTILE: [HOSTILE]})
    approval_id = asked(
        approvals,
        Ask(HOSTILE, wanted.arguments, wanted.shown, "t", "p", HOSTILE, HOSTILE, HOSTILE, HOSTILE),
    )
    for verb in (("list",), ("show", approval_id), ("deny", approval_id, "--reason", HOSTILE)):
        shown = on_a_terminal("approvals", *verb, *options, cwd=tmp_path)
        assert "gnp" in shown
        assert all(character.isprintable() or character == "\n" for character in shown)
        assert "\n\x9b" not in shown


def test_nothing_to_list_is_said_to_people_and_is_data_to_programs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert data(run("approvals", "list", cwd=tmp_path)) == {"approvals": []}
    assert on_a_terminal("approvals", "list", cwd=tmp_path) == ""
    assert "portbook: there are no approvals" in capfd.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_a_store_that_is_none_is_said_in_a_sentence(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "portbook.db") as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    finished = run("approvals", "list", cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert finished.err.startswith("portbook: error: ")
    assert "a different program" in finished.err


def test_settings_that_cannot_be_used_are_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text('[stroe]\npath = "x"\n')
    finished = run("approvals", "list", cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert "portbook: error: " in finished.err
