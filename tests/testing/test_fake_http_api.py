"""HTTP APIs that a function answers for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.testing import ApiRequest, ApiResponse, TestClient
from portbook.testing.fake_http_api import _response

SETTINGS: dict[str, Any] = {
    "http": {
        "orders": {
            "base_url": "https://api.example.com/v1",
            "bearer": {"env": "ORDERS_TOKEN"},
            "retries": 1,
            "max_response_bytes": 100,
            "tools": {
                "get": {
                    "method": "GET",
                    "path": "/orders/{id}",
                    "query": ["full"],
                    "input": {
                        "type": "object",
                        "required": ["id"],
                        "properties": {"id": {"type": "string"}, "full": {"type": "boolean"}},
                    },
                },
                "add": {
                    "method": "POST",
                    "path": "/orders",
                    "input": {"type": "object", "properties": {"cents": {"type": "integer"}}},
                },
            },
        }
    }
}
TOKEN = "token-of-the-orders-api"


def client_of(upstream: Any, **policy: Any) -> TestClient:
    policy = {"allowed_domains": ["api.example.com"], **policy}
    return TestClient(settings=SETTINGS, policy=policy, upstream=upstream, environ={"ORDERS_TOKEN": TOKEN})


def test_a_function_answers_with_json() -> None:
    seen: list[ApiRequest] = []

    def api(request: ApiRequest) -> Any:
        seen.append(request)
        return {"id": "7", "token": TOKEN}

    with client_of(api) as client:
        result = client.call("orders.get", id="7", full=True)
        assert result.value == {"id": "7", "token": "[redacted]"}
        assert result.execution["domain"] == "api.example.com:443"
    [request] = seen
    assert (request.method, request.url, request.body) == (
        "GET",
        "https://api.example.com/v1/orders/7?full=true",
        b"",
    )
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["x-request-id"] == result.record["requestId"]


def test_a_function_can_be_a_coroutine_function_and_say_how() -> None:
    async def api(request: ApiRequest) -> ApiResponse:
        assert request.json() == {"cents": 5}
        return ApiResponse(201, body=b'{"made":true}', headers={"X-Made": "1"})

    with client_of(api) as client:
        assert client.call("orders.add", cents=5).value == {"made": True}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ApiResponse(404, json={}), "UPSTREAM_NOT_FOUND"),
        (ApiResponse(200, body=b"<html>", headers={"content-type": "text/html"}), "UPSTREAM_ERROR"),
        (ApiResponse(200, json="x" * 200), "UPSTREAM_ERROR"),
        (ConnectionRefusedError(), "UPSTREAM_ERROR"),
        (ConnectionResetError(), "UPSTREAM_ERROR"),
        (TimeoutError(), "TIMEOUT"),
    ],
    ids=["a status", "no JSON", "too large", "refused", "broken off", "too slow"],
)
def test_an_api_can_fail_in_every_way(answer: ApiResponse | Exception, reason: str) -> None:
    def api(request: ApiRequest) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with client_of(api) as client:
        result = client.call("orders.add", cents=5)
        assert result.reason == reason
        assert result.executed is not isinstance(answer, ConnectionRefusedError)


@pytest.mark.parametrize(
    ("answer", "body"),
    [(ApiResponse(204), b""), (ApiResponse(200, json=None), b"null"), (ApiResponse(body=b""), b"")],
    ids=["nothing", "null", "no bytes"],
)
def test_a_response_has_a_body_where_it_is_given_one(answer: ApiResponse, body: bytes) -> None:
    response = _response(answer)
    assert response.body == body
    assert (b"content-type" in response.headers) is bool(body)


def test_an_answer_without_a_body_has_the_value_none() -> None:
    with client_of(lambda request: ApiResponse(204)) as client:
        assert client.call("orders.add", cents=5).value is None


def test_what_cannot_be_called_is_the_tests_mistake() -> None:
    with pytest.raises(TypeError, match="upstream= is a function that gets an ApiRequest, not dict"):
        client_of({})


def backend_client(folder: Path, upstream: Any) -> TestClient:
    (folder / "synesthetic-asset.schema.json").write_text('{"type": "object"}')
    assets = {"schemas": str(folder), "backend_url": "http://127.0.0.1:1/api"}
    return TestClient(settings={"assets": assets}, upstream=upstream)


def test_the_asset_backend_is_answered_for_too(tmp_path: Path) -> None:
    seen: list[ApiRequest] = []

    def backend(request: ApiRequest) -> Any:
        seen.append(request)
        return ApiResponse(201, json={"id": "a-1"})

    with backend_client(tmp_path, backend) as client:
        result = client.call("populate_backend", asset={"name": "a"})
        assert (result.value["ok"], result.value["asset_id"]) == (True, "a-1")
    [request] = seen
    assert (request.method, request.url) == ("POST", "http://127.0.0.1:1/api/synesthetic-assets/")
    assert request.json() == {"name": "a"}


def test_the_asset_backend_is_not_dialled_without_a_function(tmp_path: Path) -> None:
    with (
        backend_client(tmp_path, None) as client,
        pytest.raises(LookupError, match=r"a tool called POST http://127.0.0.1:1/api/"),
    ):
        client.call("populate_backend", asset={"name": "a"})


def test_an_idempotent_call_is_repeated_as_the_settings_say() -> None:
    answers = [ApiResponse(503), ApiResponse(json={"id": "7"})]
    with client_of(lambda request: answers.pop(0)) as client:
        assert client.call("orders.get", id="7").value == {"id": "7"}


def test_policy_decides_before_the_function_is_asked() -> None:
    def api(request: ApiRequest) -> Any:
        raise AssertionError("policy lets nothing out")

    with client_of(api, allowed_domains=["other.example.com"]) as client:
        result = client.call("orders.get", id="7")
        assert (result.reason, result.executed) == ("POLICY_VIOLATION", False)


def test_what_the_function_raises_is_raised_by_the_call() -> None:
    def api(request: ApiRequest) -> Any:
        raise ZeroDivisionError

    with client_of(api) as client, pytest.raises(ZeroDivisionError):
        client.call("orders.get", id="7")


def test_nothing_is_dialled_where_there_is_no_function() -> None:
    expected = r"a tool called GET https://api.example.com/v1/orders/7; give the client upstream="
    with client_of(None) as client, pytest.raises(LookupError, match=expected):
        client.call("orders.get", id="7")
