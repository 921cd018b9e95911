"""`GET /tools`, `POST /execute` and `POST /tools/NAME`, as a process: every status, one shape of answers."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from portbook.stores.caller_keys import digest_of_key
from support.portbook_process import HttpServer, Response, environment, http_server
from support.threaded_api import Upstream, upstream

ADA, GUEST, OPERATOR = "key of ada", "key of a guest", "key of the operator"

TOOLS = '''
import time
from typing import Annotated
from pydantic import Field
from portbook import Toolset

toolset = Toolset("routes")

@toolset.tool(effect="read")
def look(text: str = "", times: Annotated[int, Field(le=3)] = 1) -> dict[str, str]:
    """Look at it."""
    secret = {"password": "hunter2 hunter2"} if text == "secret" else {}
    return {"text": text * times, **secret}

@toolset.tool(effect="write")
def refund(cents: int) -> int:
    return cents

@toolset.tool(effect="destructive")
def wipe() -> None: ...

@toolset.tool(effect="read", timeout_ms=50)
def slow() -> None:
    time.sleep(30)

@toolset.tool(effect="read")
def wrong() -> int:
    return "no number"

@toolset.tool(effect="read")
def broken() -> int:
    raise RuntimeError("canary in an exception")
'''

SETTINGS = """
[python]
toolsets = ["tools.py"]
[docs]
enabled = false

[policy]
max_payload_bytes = 1000
max_attempts = 3
allowed_methods = ["GET"]

[[policy.rules]]
name = "large refunds need a person"
tools = ["refund"]
where = {{ "/cents" = {{ minimum = 10000 }} }}
action = "ask"

[[policy.rules]]
name = "nothing destructive"
effects = ["destructive"]
action = "deny"

[[keys.allow]]
name = "ada"
sha256 = "{ada}"

[[keys.allow]]
name = "guest"
sha256 = "{guest}"
tools = ["look"]

[http.api]
base_url = "http://127.0.0.1:{port}"
[http.api.tools.get]
method = "GET"
path = "/things/{{id}}"
input = {{ type = "object", required = ["id"], properties = {{ id = {{ type = "string" }} }} }}
[http.api.tools.add]
method = "POST"
path = "/things"
effect = "read"
input = {{ type = "object" }}

[http.gone]
base_url = "http://127.0.0.1:{closed}"
[http.gone.tools.get]
method = "GET"
path = "/things"
input = {{ type = "object" }}
"""


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port at which nobody listens, and that nobody else is given meanwhile."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@dataclass(frozen=True)
class Served:
    server: HttpServer
    api: Upstream
    folder: Path

    def post(self, path: str, body: Any, *, key: str | None = None, **headers: str) -> Response:
        given = {"content_type": "application/json", **headers}
        if key is not None:
            given["authorization"] = f"Bearer {key}"
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.server.request(path, data, **given)

    def execute(self, tool: str, args: Any = None, *, key: str | None = None, **more: Any) -> Response:
        body = {"session_id": "s-1", "tool_id": tool, "args": {} if args is None else args, **more}
        return self.post("/execute", body, key=key)

    def executions(self) -> list[Any]:
        folder = self.folder / "runs" / "mcp_server" / "execution"
        text = (folder / "execution.latest.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("rest")
    with upstream() as api, closed_port() as closed:
        (folder / "tools.py").write_text(TOOLS)
        (folder / "portbook.toml").write_text(
            SETTINGS.format(port=api.port, closed=closed, ada=digest_of_key(ADA), guest=digest_of_key(GUEST))
        )
        env = environment(PORTBOOK_OPERATOR_KEY=OPERATOR)
        with http_server(cwd=folder, tools=(), env=env) as server:
            yield Served(server, api, folder)


def answer_of(response: Response) -> Any:
    """The answer, once it is sure that it has the one shape of all answers."""
    answer = response.json
    assert response.headers["content-type"] == "application/json"
    assert list(answer) == ["status", "result", "error", "metadata"]
    metadata = answer["metadata"]
    assert metadata["status_code"] == response.status
    assert metadata["request_id"] == response.headers["x-request-id"]
    assert metadata["latency_ms"] >= 0
    assert type(metadata["redaction_applied"]) is bool
    if answer["status"] == "success":
        assert response.status == 200
        assert answer["error"] is None
    else:
        assert (answer["status"], answer["result"]) == ("failure", None)
        error = answer["error"]
        assert list(error) == ["code", "message", "details", "retryable", "policy_violation"]
        assert [type(value) for value in error.values()] == [str, str, dict, bool, bool]
    return answer


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


# --- POST /execute


@pytest.mark.covers("002.execute.success")
@pytest.mark.parametrize("tool_id", ["look", "mcp.tool:look"])
def test_a_call_has_a_result_and_metadata(served: Served, tool_id: str) -> None:
    response = served.execute(tool_id, {"text": "ab", "times": 2})
    answer = answer_of(response)
    assert answer["result"] == {"text": "abab"}
    assert answer["metadata"]["redaction_applied"] is False
    assert "approval_id" not in answer["metadata"]
    assert response.headers["cache-control"] == "no-store"


def test_a_call_through_the_gateway_has_the_apis_answer(served: Served) -> None:
    answer = answer_of(served.execute("api.get", {"id": "a/b"}))
    assert (answer["result"]["path"], answer["result"]["given"]) == ("/things/a%2Fb", "")


def test_a_secret_in_a_result_is_taken_out_and_that_is_told(served: Served) -> None:
    response = served.execute("look", {"text": "secret"})
    answer = answer_of(response)
    assert answer["result"] == {"text": "secret", "password": "[redacted]"}
    assert answer["metadata"]["redaction_applied"] is True
    assert served.executions()[-1]["redaction_applied"] is True
    assert b"hunter2" not in response.body


@pytest.mark.covers("002.execute.statuses")
@pytest.mark.parametrize(
    ("asked", "status", "code", "reason", "is_retryable"),
    [
        case("wrong arguments", ("look", {"times": 4}), 400, "INVALID_INPUT", "BAD_ARGUMENTS", False),
        case("denied by a rule", ("wipe", {}), 403, "POLICY_VIOLATION", "POLICY_VIOLATION", False),
        case("denied by its verb", ("api.add", {}), 403, "POLICY_VIOLATION", "POLICY_VIOLATION", False),
        case(
            "a person is needed", ("refund", {"cents": 10_000}), 403, "APPROVAL_REQUIRED",
            "APPROVAL_REQUIRED", True,
        ),
        case("an unknown tool", ("nothing", {}), 404, "NOT_FOUND", "UNKNOWN_TOOL", False),
        case("a name that no tool has", ("No Tool", {}), 404, "NOT_FOUND", "UNKNOWN_TOOL", False),
        case(
            "over the payload cap", ("look", {"text": "x" * 1000}), 413, "POLICY_VIOLATION",
            "PAYLOAD_TOO_LARGE", False,
        ),
        case("it raised", ("broken", {}), 500, "INTERNAL_ERROR", "TOOL_FAILED", False),
        case("it broke its promise", ("wrong", {}), 502, "INVALID_OUTPUT", "BAD_RESULT", False),
        case("nobody at the API", ("gone.get", {}), 502, "UPSTREAM_ERROR", "UPSTREAM_ERROR", True),
        case("its deadline passed", ("slow", {}), 504, "TIMEOUT", "TIMEOUT", True),
    ],
)  # fmt: skip
def test_every_ending_has_its_status_and_its_error(
    served: Served, asked: tuple[str, Any], status: int, code: str, reason: str, is_retryable: bool
) -> None:
    before = len(served.api.seen)
    response = served.execute(*asked)
    error = answer_of(response)["error"]
    assert (response.status, error["code"], error["details"]["reason"]) == (status, code, reason)
    assert error["retryable"] is is_retryable
    assert error["policy_violation"] is (code == "POLICY_VIOLATION")
    assert b"canary" not in response.body
    assert len(served.api.seen) == before
    record = served.executions()[-1]
    assert (record["status_code"], record["error_class"]) == (status, reason)


@pytest.mark.parametrize(
    ("change", "pointer", "message"),
    [
        case("no session", {"session_id": ...}, "", 'missing property "session_id"'),
        case("no tool", {"tool_id": ...}, "", 'missing property "tool_id"'),
        case("no arguments", {"args": ...}, "", 'missing property "args"'),
        case("arguments that are a list", {"args": []}, "/args", "expected object"),
        case("an attempt that is none", {"attempt": 0}, "/attempt", "below the minimum 1"),
        case("something else", {"input": {}}, "", 'unexpected property "input"'),
        case("wrong arguments", {"args": {"times": "x"}}, "/times", "expected integer"),
        case("an argument too many", {"args": {"txt": "x"}}, "", 'unexpected property "txt"'),
    ],
)
def test_what_is_malformed_or_missing_is_told_by_pointer(
    served: Served, change: dict[str, Any], pointer: str, message: str
) -> None:
    body = {"session_id": "s-1", "tool_id": "look", "args": {}, **change}
    response = served.post("/execute", {name: value for name, value in body.items() if value is not ...})
    error = answer_of(response)["error"]
    assert (response.status, error["code"]) == (400, "INVALID_INPUT")
    (violation,) = error["details"]["violations"]
    assert (violation["pointer"], violation["message"]) == (pointer, message)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"nonsense", b'{"a":1,"a":2}', b"[]", b"null", b"\xff", b"[" * 2000]
)
def test_a_body_that_is_no_json_object_is_refused(served: Served, body: bytes) -> None:
    response = served.post("/execute", body)
    error = answer_of(response)["error"]
    assert (response.status, error["code"]) == (400, "INVALID_INPUT")
    assert error["details"]["violations"]


def test_policy_speaks_before_the_arguments_are_looked_at(served: Served) -> None:
    response = served.execute("wipe", {"whom": 1})
    assert (response.status, response.json["error"]["details"]["rule"]) == (403, "nothing destructive")
    assert "violations" not in response.json["error"]["details"]


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""]
)
def test_only_json_is_read(served: Served, content_type: str) -> None:
    body = {"session_id": "s-1", "tool_id": "look", "args": {}}
    response = served.post("/execute", body, content_type=content_type)
    assert (response.status, answer_of(response)["error"]["code"]) == (415, "INVALID_INPUT")


@pytest.mark.parametrize("extra", [1, 4_000_000])
def test_a_body_over_a_mebibyte_is_refused_and_the_next_one_is_served(served: Served, extra: int) -> None:
    response = served.post("/execute", b" " * (1_048_576 + extra))
    error = answer_of(response)["error"]
    assert (response.status, error["code"], error["policy_violation"]) == (413, "POLICY_VIOLATION", True)
    assert served.execute("look").status == 200


@pytest.mark.covers("002.callers.wrong-key")
@pytest.mark.parametrize("key", ["wrong", "", OPERATOR])
def test_a_wrong_key_and_the_operators_key_are_refused(served: Served, key: str) -> None:
    response = served.execute("look", key=key)
    error = answer_of(response)["error"]
    assert (response.status, error["code"]) == (401, "UNAUTHORIZED")
    assert response.headers["www-authenticate"] == "Bearer"


def test_the_caller_of_a_key_is_recorded(served: Served) -> None:
    assert served.execute("look", key=ADA).status == 200
    assert served.executions()[-1]["caller"] == "ada"


@pytest.mark.covers("design.tools.brief")
def test_tools_are_listed_in_short_and_one_is_described_whole(served: Served) -> None:
    listed = served.server.request("/tools?brief=1").json["tools"]
    assert [tool["name"] for tool in listed] == EVERY_TOOL
    assert not any("schema" in member for tool in listed for member in tool)
    assert {tool["group"] for tool in listed} == {"", "api", "gone"}
    whole = served.server.request("/tools/look")
    assert (whole.status, whole.json["name"], whole.json["listed"]) == (200, "look", "look")
    assert whole.json["args_form"]["properties"]["times"]["maximum"] == 3


@pytest.mark.parametrize(("key", "status"), [(ADA, 200), (GUEST, 404), ("wrong", 401)])
def test_a_tool_is_described_to_those_who_may_see_it(served: Served, key: str, status: int) -> None:
    response = served.server.request("/tools/refund", authorization=f"Bearer {key}")
    assert response.status == status
    assert served.server.request("/tools/nothing").status == 404


def test_another_credential_than_a_bearers_is_a_wrong_key(served: Served) -> None:
    body = {"session_id": "s-1", "tool_id": "look", "args": {}}
    assert served.post("/execute", body, authorization=f"Basic {ADA}").status == 401


def test_a_foreign_host_is_refused_in_the_same_shape(served: Served) -> None:
    body = {"session_id": "s-1", "tool_id": "look", "args": {}}
    response = served.post("/execute", body, host="evil.test")
    assert (response.status, answer_of(response)["error"]["details"]["reason"]) == (403, "FOREIGN_HOST")


def test_a_call_is_recorded_with_what_its_body_says(served: Served) -> None:
    more = {"trace_id": "t-1", "agent_step": 4, "attempt": 2}
    answer = answer_of(served.execute("api.get", {"id": "7"}, **more))
    record = served.executions()[-1]
    wanted = {
        "session_id": "s-1",
        "trace_id": "t-1",
        "request_id": answer["metadata"]["request_id"],
        "tool_id": "mcp.tool:api.get",
        "endpoint": f"http://127.0.0.1:{served.api.port}/things/{{id}}",
        "domain": f"127.0.0.1:{served.api.port}",
        "method": "GET",
        "agent_step": 4,
        "attempt": 2,
        "status_code": 200,
        "latency_ms": answer["metadata"]["latency_ms"],
        "decision": "allow",
        "caller": "anonymous",
    }
    assert {name: record[name] for name in wanted} == wanted
    assert answer["metadata"]["trace_id"] == "t-1"


def test_the_api_hears_whose_work_the_call_is_part_of(served: Served) -> None:
    answer = answer_of(served.execute("api.get", {"id": "7"}, trace_id="t-1", correlation_id="c-1"))
    headers = served.api.headers[-1]
    assert headers["x-request-id"] == answer["metadata"]["request_id"]
    assert (headers["x-trace-id"], headers["x-correlation-id"]) == ("t-1", "c-1")
    assert headers["x-session-id"] == "s-1"
    assert "authorization" not in headers


def test_too_many_calls_are_told_when_to_come_back(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(
        '[python]\ntoolsets = ["tools.py"]\n[policy]\nmax_calls_per_minute = 1\n'
    )
    with upstream() as api, http_server(cwd=tmp_path, tools=()) as server:
        served = Served(server, api, tmp_path)
        assert served.execute("look").status == 200
        response = served.execute("look")
        error = answer_of(response)["error"]
        assert (response.status, error["code"], error["retryable"]) == (429, "RATE_LIMITED", True)
        assert int(response.headers["retry-after"]) == error["details"]["retry_after_s"] <= 60


# --- POST /tools/NAME


def test_a_tool_has_a_route_of_its_own(served: Served) -> None:
    for route in ("/tools/look", "/tools/mcp.tool:look"):
        answer = answer_of(served.post(route, {"session_id": "s-1", "args": {"text": "x"}}))
        assert answer["result"] == {"text": "x"}
    assert served.executions()[-1]["tool_id"] == "mcp.tool:look"


@pytest.mark.parametrize(
    ("route", "body", "status", "pointer"),
    [
        case("the same tool named twice", "/tools/look", {"tool_id": "mcp.tool:look"}, 200, None),
        case("another tool in the body", "/tools/look", {"tool_id": "refund"}, 400, "/tool_id"),
        case("an unknown tool", "/tools/nothing", {}, 404, None),
        case("a name that no tool has", "/tools/No%20Tool", {}, 404, None),
        case("something missing", "/tools/look", {"args": ...}, 400, ""),
    ],
)
def test_the_route_decides_which_tool_it_is(
    served: Served, route: str, body: dict[str, Any], status: int, pointer: str | None
) -> None:
    whole = {"session_id": "s-1", "args": {}, **body}
    response = served.post(route, {name: value for name, value in whole.items() if value is not ...})
    answer = answer_of(response)
    assert response.status == status
    if pointer is not None:
        assert [each["pointer"] for each in answer["error"]["details"]["violations"]] == [pointer]


# --- GET /tools


def names(response: Response) -> list[str]:
    return [tool["name"] for tool in response.json["tools"]]


EVERY_TOOL = ["api.add", "api.get", "broken", "gone.get", "look", "refund", "slow", "wipe", "wrong"]


@pytest.mark.covers("002.tools.listed")
def test_the_tools_are_listed_with_what_a_caller_needs_to_call_them(served: Served) -> None:
    response = served.server.request("/tools")
    assert response.status == 200
    assert names(response) == EVERY_TOOL
    tools = {tool["name"]: tool for tool in response.json["tools"]}
    look, get = tools["look"], tools["api.get"]
    assert (look["tool_id"], look["description"]) == ("mcp.tool:look", "Look at it.")
    assert look["args_schema"]["properties"]["times"]["maximum"] == 3
    assert (look["allowed_methods"], look["allowed_domains"]) == ([], [])
    assert (get["allowed_methods"], get["allowed_domains"]) == (["GET"], [f"127.0.0.1:{served.api.port}"])
    assert tools["api.add"]["allowed_methods"] == []
    for tool in tools.values():
        assert {"tool_id", "name", "description", "args_schema", "allowed_methods"} <= tool.keys()


@pytest.mark.covers("002.tools.only-visible")
def test_a_caller_sees_the_tools_of_its_key_and_no_other_answers(served: Served) -> None:
    response = served.server.request("/tools", authorization=f"Bearer {GUEST}")
    assert names(response) == ["look"]
    hidden, missing = served.execute("refund", {"cents": 1}, key=GUEST), served.execute("no", key=GUEST)
    assert (hidden.status, hidden.json["error"]) == (missing.status, missing.json["error"])
    assert hidden.status == 404


@pytest.mark.parametrize("key", ["wrong", OPERATOR])
def test_whoever_has_a_wrong_key_sees_no_tools(served: Served, key: str) -> None:
    response = served.server.request("/tools", authorization=f"Bearer {key}")
    assert (response.status, answer_of(response)["error"]["code"]) == (401, "UNAUTHORIZED")


def test_the_tools_are_not_for_pages_of_other_sites(served: Served) -> None:
    assert served.server.request("/tools", host="evil.test").status == 403
    assert served.server.request("/tools", origin="https://evil.test").status == 403


def test_looking_at_the_tools_is_recorded(served: Served) -> None:
    served.server.request("/tools", authorization=f"Bearer {GUEST}")
    record = served.executions()[-1]
    assert (record["caller"], record["tool_id"], record["status_code"]) == ("guest", None, 200)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/execute", "POST"), ("POST", "/tools", "GET"), ("DELETE", "/tools/look", "GET, POST")],
)
def test_other_verbs_are_told_which_one_is_taken(
    served: Served, method: str, path: str, allowed: str
) -> None:
    response = served.server.request(path, None if method == "GET" else b"{}", method=method)
    assert (response.status, response.headers["allow"]) == (405, allowed)
