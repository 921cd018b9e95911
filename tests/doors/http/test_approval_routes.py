"""`GET /approvals` and `POST /approvals/ID`, as a process: the operator's key, and what it decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from portbook.stores.caller_keys import digest_of_key
from support.portbook_process import HttpServer, Response, environment, http_server

ADA, OPERATOR = "key of ada", "key of the operator"

TOOLS = """
from portbook import Toolset

toolset = Toolset("approved")

@toolset.tool(effect="write")
def refund(cents: int, password: str = "") -> int:
    return cents
"""

SETTINGS = f"""
[python]
toolsets = ["tools.py"]
[policy]
approval = "writes"
[[keys.allow]]
name = "ada"
sha256 = "{digest_of_key(ADA)}"
"""


@dataclass
class Served:
    server: HttpServer
    folder: Path
    cents: int = 0

    def execute(self, cents: int, key: str | None = ADA, **more: Any) -> Response:
        args = {"cents": cents, "password": "hunter2 hunter2"}
        body = {"session_id": "s-1", "tool_id": "refund", "args": args, **more}
        return self.post("/execute", body, key)

    def ask(self) -> tuple[str, int]:
        """Ask for an approval that nobody has asked for before; return its id and the amount."""
        self.cents += 1
        response = self.execute(self.cents)
        assert (response.status, response.json["error"]["code"]) == (403, "APPROVAL_REQUIRED")
        return response.json["error"]["details"]["approval_id"], self.cents

    def post(self, path: str, body: Any, key: str | None = OPERATOR, **headers: str) -> Response:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.server.request(
            path, data, **{"content_type": "application/json", **credentials(key), **headers}
        )

    def get(self, path: str, key: str | None = OPERATOR) -> Response:
        return self.server.request(path, **credentials(key))

    def decide(self, approval_id: str, decision: str, key: str | None = OPERATOR, **more: Any) -> Response:
        return self.post(f"/approvals/{approval_id}", {"decision": decision, **more}, key)

    def last_execution(self) -> Any:
        folder = self.folder / "runs" / "mcp_server" / "execution"
        return json.loads((folder / "execution.latest.jsonl").read_text("utf-8").splitlines()[-1])


def credentials(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("approvals")
    (folder / "tools.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(SETTINGS)
    env = environment(PORTBOOK_OPERATOR_KEY=OPERATOR)
    with http_server(cwd=folder, tools=(), env=env) as server:
        yield Served(server, folder)


def refused(response: Response) -> tuple[int, str, str]:
    error = response.json["error"]
    assert list(error) == ["code", "message", "details", "retryable", "policy_violation"]
    return response.status, error["code"], error["details"]["reason"]


@pytest.mark.covers("002.approval.operators-key")
@pytest.mark.parametrize("key", [None, ADA, "wrong", ""], ids=["none", "a caller's", "wrong", "empty"])
def test_without_the_operators_key_nothing_is_seen_and_nothing_decided(
    served: Served, key: str | None
) -> None:
    approval, cents = served.ask()
    for response in (
        served.get("/approvals", key),
        served.get(f"/approvals/{approval}", key),
        served.get("/approvals/unknown", key),
        served.decide(approval, "approve", key),
        served.post(f"/approvals/{approval}", b"nonsense", key),
    ):
        assert refused(response) == (401, "UNAUTHORIZED", "UNAUTHORIZED")
        assert response.headers["www-authenticate"] == "Bearer"
        assert approval not in response.body.decode()
    assert served.get(f"/approvals/{approval}").json["state"] == "pending"
    assert served.execute(cents, approval_id=approval).json["error"]["code"] == "APPROVAL_REQUIRED"


def test_the_operators_key_calls_nothing(served: Served) -> None:
    assert refused(served.execute(1, OPERATOR)) == (401, "UNAUTHORIZED", "UNAUTHORIZED")


def test_an_operator_sees_what_is_asked_for_by_whom_and_why_but_no_secret(served: Served) -> None:
    approval, cents = served.ask()
    response = served.get("/approvals")
    assert response.status == 200
    shown = response.json["approvals"][0]  # the newest first
    assert shown == served.get(f"/approvals/{approval}").json
    wanted = {
        "approval_id": approval,
        "state": "pending",
        "tool": "refund",
        "arguments": {"cents": cents, "password": "[redacted]"},
        "caller": "ada",
        "session_id": "s-1",
        "rule": "approval",
        "place": "portbook.toml:5",
    }
    assert {name: shown[name] for name in wanted} == wanted
    assert "hunter2" not in response.body.decode()


@pytest.mark.covers("002.approval.http")
def test_an_approved_call_runs_once(served: Served) -> None:
    approval, cents = served.ask()
    decided = served.decide(approval, "approve", reason="it is right")
    assert (decided.status, decided.json["state"]) == (200, "approved")
    assert (decided.json["decided_by"], decided.json["reason"]) == ("operator (HTTP)", "it is right")
    done = served.execute(cents, approval_id=approval)
    assert (done.status, done.json["result"]) == (200, cents)
    assert done.json["metadata"]["approval_id"] == approval
    again = served.execute(cents, approval_id=approval)
    assert refused(again) == (403, "POLICY_VIOLATION", "APPROVAL_REFUSED")
    assert again.json["error"]["details"]["why"] == "used"
    while (state := served.get(f"/approvals/{approval}").json["state"]) == "running":
        pass  # that it has ended is written after the answer has left
    assert state == "done"


def test_a_denied_call_does_not_run(served: Served) -> None:
    approval, cents = served.ask()
    assert served.decide(approval, "deny").json["state"] == "denied"
    response = served.execute(cents, approval_id=approval)
    assert refused(response) == (403, "POLICY_VIOLATION", "APPROVAL_DENIED")
    assert response.json["error"]["details"]["why"] == "denied"


def test_a_refused_redemption_does_not_spend_the_approval(served: Served) -> None:
    approval, cents = served.ask()
    served.decide(approval, "approve")
    for response in (
        served.execute(cents + 1000, approval_id=approval),
        served.execute(cents, None, approval_id=approval),
    ):
        assert refused(response) == (403, "POLICY_VIOLATION", "APPROVAL_REFUSED")
    assert served.execute(cents, approval_id=approval).status == 200


def test_the_caller_of_an_unknown_approval_is_told_so(served: Served) -> None:
    response = served.execute(served.ask()[1], approval_id="nothing")
    assert refused(response)[2] == "APPROVAL_REFUSED"
    assert response.json["error"]["details"]["why"] == "unknown"


@pytest.mark.parametrize("approval", ["unknown", "0" * 32, "%00", "no%20id", "x" * 300])
def test_an_unknown_approval_is_not_found(served: Served, approval: str) -> None:
    for response in (served.get(f"/approvals/{approval}"), served.decide(approval, "approve")):
        assert refused(response) == (404, "NOT_FOUND", "APPROVAL_UNKNOWN")


@pytest.mark.parametrize(
    ("decisions", "state", "why"),
    [
        (["approve", "approve"], "approved", "it has already been approved"),
        (["deny", "deny"], "denied", "it was denied; the caller has to request a new approval"),
        (["deny", "approve"], "denied", "it was denied; the caller has to request a new approval"),
    ],
)
def test_what_is_decided_already_is_a_conflict(
    served: Served, decisions: list[str], state: str, why: str
) -> None:
    approval, _ = served.ask()
    first, second = (served.decide(approval, decision) for decision in decisions)
    assert first.status == 200
    assert refused(second) == (409, "INVALID_INPUT", "APPROVAL_SETTLED")
    details = second.json["error"]["details"]
    assert (details["state"], details["why"]) == (state, why)


def test_an_approval_that_was_not_used_can_still_be_denied(served: Served) -> None:
    approval, cents = served.ask()
    assert [served.decide(approval, decision).status for decision in ("approve", "deny")] == [200, 200]
    assert served.execute(cents, approval_id=approval).json["error"]["details"]["why"] == "denied"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        pytest.param({}, "/decision", id="no decision"),
        pytest.param([], "/decision", id="a list"),
        pytest.param({"decision": "maybe"}, "/decision", id="another word"),
        pytest.param({"decision": True}, "/decision", id="no word"),
        pytest.param({"decision": ["approve"]}, "/decision", id="a list of words"),
        pytest.param({"decision": "approve", "reason": 5}, "/reason", id="a reason that is a number"),
        pytest.param({"decision": "approve", "reason": "x" * 1001}, "/reason", id="a novel"),
        pytest.param({"decision": "approve", "by": "me"}, "", id="something else"),
        pytest.param(b"nonsense", "", id="not JSON"),
    ],
)
def test_a_decision_of_another_shape_is_refused_with_its_pointer_and_decides_nothing(
    served: Served, body: Any, pointer: str
) -> None:
    approval, _ = served.ask()
    response = served.post(f"/approvals/{approval}", body)
    assert (response.status, response.json["error"]["code"]) == (400, "INVALID_INPUT")
    assert [each["pointer"] for each in response.json["error"]["details"]["violations"]] == [pointer]
    assert served.get(f"/approvals/{approval}").json["state"] == "pending"


def test_a_decision_that_is_not_json_or_too_long_or_for_another_host_is_refused(served: Served) -> None:
    approval, _ = served.ask()
    path, body = f"/approvals/{approval}", {"decision": "approve"}
    assert served.post(path, body, content_type="text/plain").status == 415
    assert served.post(path, b" " * 1_048_577).status == 413
    assert served.post(path, body, host="evil.test").status == 403
    assert served.post(path, body, origin="https://evil.test").status == 403
    assert served.get(path).json["state"] == "pending"


def test_approvals_are_listed_by_their_state(served: Served) -> None:
    pending, _ = served.ask()
    denied, _ = served.ask()
    served.decide(denied, "deny")

    def listed(state: str) -> set[str]:
        tickets = served.get(f"/approvals?state={state}").json["approvals"]
        assert {ticket["state"] for ticket in tickets} <= {state}
        return {ticket["approval_id"] for ticket in tickets}

    assert pending in listed("pending")
    assert denied not in listed("pending")
    assert denied in listed("denied")
    unknown = served.get("/approvals?state=perhaps")
    assert unknown.status == 400
    assert unknown.json["error"]["details"]["violations"][0]["pointer"] == "/state"


@pytest.mark.covers("002.approval.decisions-recorded")
def test_a_decision_is_recorded_as_the_operators(served: Served) -> None:
    approval, _ = served.ask()
    served.decide(approval, "approve")
    record = served.last_execution()
    assert (record["caller"], record["status_code"], record["tool_id"]) == ("operator", 200, None)
    assert record["approval_id"] == approval
    served.decide(approval, "approve", ADA)
    record = served.last_execution()
    assert (record["caller"], record["error_class"], record["approval_id"]) == (None, "UNAUTHORIZED", None)


def test_a_call_waits_for_a_decision_as_long_as_it_says(served: Served) -> None:
    served.cents += 1
    cents = served.cents
    answers: list[Response] = []
    waiting = threading.Thread(target=lambda: answers.append(served.execute(cents, wait_ms=30_000)))
    waiting.start()
    approval = None
    while approval is None:
        tickets = served.get("/approvals?state=pending").json["approvals"]
        approval = next((one["approval_id"] for one in tickets if one["arguments"]["cents"] == cents), None)
    assert served.decide(approval, "approve").status == 200
    waiting.join(30)
    (answer,) = answers
    assert (answer.status, answer.json["result"]) == (200, cents)
    assert answer.json["metadata"]["approval_id"] == approval


def test_without_an_operators_key_in_the_environment_nobody_decides(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(SETTINGS)
    with http_server(cwd=tmp_path, tools=()) as server:
        served = Served(server, tmp_path)
        approval, _ = served.ask()
        for key in (None, "", OPERATOR, ADA):
            assert served.decide(approval, "approve", key).status == 401


def test_without_an_operators_key_the_answer_says_what_to_set(tmp_path: Path) -> None:
    with http_server(cwd=tmp_path, env=environment()) as server:
        answer = server.request("/approvals", accept="application/json", authorization="Bearer x")
        assert answer.status == 401
        assert "This server has no operator key. Set PORTBOOK_OPERATOR_KEY" in answer.body.decode()
