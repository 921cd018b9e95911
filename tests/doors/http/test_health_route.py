"""`GET /health`, `/livez`, `/readyz`: what works, what does not, and that what does not is said with 503."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from portbook import __version__
from portbook.doors.http.health_route import Fellows, health
from portbook.doors.http.request import InboundRequest, RequestHead
from portbook.doors.http.response import Reply
from portbook.model import JSONObject
from support.portbook_process import HttpServer, http_server, invoke
from support.threaded_api import Upstream, upstream

SETTINGS = """
[http.here]
base_url = "http://127.0.0.1:{port}"
[http.here.tools.get]
method = "GET"
path = "/"
input = {{ type = "object" }}
[http.gone]
base_url = "http://127.0.0.1:{closed}"
[http.gone.tools.get]
method = "GET"
path = "/"
input = {{ type = "object" }}
"""


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[tuple[HttpServer, Upstream]]:
    with upstream() as api, socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        closed = reserved.getsockname()[1]
        (folder / "portbook.toml").write_text(SETTINGS.format(port=api.port, closed=closed))
        with http_server(cwd=folder) as server:
            yield server, api


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HttpServer, Upstream]]:
    with serving(tmp_path_factory.mktemp("health")) as served:
        yield served


@pytest.mark.covers("002.health.checks")
@pytest.mark.parametrize("path", ["/health", "/readyz", "/health?deep=0", "/health?deep=yes"])
def test_a_boundary_that_can_do_its_work_says_so_check_by_check(
    served: tuple[HttpServer, Upstream], path: str
) -> None:
    server, api = served
    response = server.request(path)
    assert (response.status, response.headers["content-type"]) == (200, "application/json")
    well = {"status": "ok"}
    checks = {"store": well, "audit": well, "schemas": well}
    assert response.json == {"status": "ok", "version": __version__, "checks": checks}
    assert api.seen == []


@pytest.mark.covers("002.health.deep")
def test_gateways_are_looked_at_where_that_is_asked_for_and_one_that_is_gone_does_not_take_the_others_down(
    served: tuple[HttpServer, Upstream],
) -> None:
    server, _ = served
    response = server.request("/health?deep=1")
    assert (response.status, response.json["status"]) == (200, "ok")
    checks = response.json["checks"]
    assert checks["gateway:here"] == {"status": "ok"}
    assert checks["gateway:gone"]["status"] == "failed"
    assert checks["gateway:gone"]["problem"]


def test_the_process_answers_and_says_nothing_more(served: tuple[HttpServer, Upstream]) -> None:
    response = served[0].request("/livez")
    assert (response.status, response.json) == (200, {"status": "ok", "version": __version__})


@pytest.mark.parametrize("path", ["/health", "/readyz"])
def test_a_health_check_is_for_this_host_alone(served: tuple[HttpServer, Upstream], path: str) -> None:
    assert served[0].request(path, host="evil.test").status == 403
    head = served[0].request(path, method="HEAD")
    assert (head.status, head.body) == (200, b"")


@pytest.mark.covers("002.health.audit")
def test_a_boundary_that_cannot_write_its_records_refuses_calls_and_says_why_until_it_can(
    tmp_path: Path,
) -> None:
    with http_server(cwd=tmp_path) as server:
        call = invoke("raising", {"text": "x"})
        assert server.rpc(call).json["error"]["data"]["canonical_code"] == "INTERNAL_ERROR"  # it ran
        process = server.process.pid
        before = resource.prlimit(process, resource.RLIMIT_FSIZE)
        records = tmp_path / "runs" / "mcp_server" / "execution" / "execution.latest.jsonl"
        room = records.stat().st_size  # no file may grow beyond it: a full disk, for this process alone
        resource.prlimit(process, resource.RLIMIT_FSIZE, (room, before[1]))
        refused = server.rpc(call)
        assert (refused.status, refused.json["error"]["data"]["reason"]) == (503, "NOT_RECORDED")
        unwell = server.request("/health")
        assert (unwell.status, unwell.json["status"]) == (503, "failed")
        assert unwell.json["checks"]["audit"] == {"status": "failed", "problem": "File too large"}
        assert server.request("/readyz").status == 503
        assert server.request("/livez").status == 200
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)
        assert server.request("/health").status == 200
        assert server.rpc(call).status == 500  # it runs again
        lines = records.read_text().splitlines()
    assert len(lines) == 2


def answered(
    found: Mapping[str, str | None],
    query: bytes = b"",
    *,
    is_known: bool = True,
    workers: Fellows | None = None,
) -> tuple[int, Any, list[bool]]:
    asked: list[bool] = []

    async def checks(deep: bool) -> Mapping[str, str | None]:
        asked.append(deep)
        return found

    request = InboundRequest(RequestHead("GET", "/health", query, []))

    async def ask() -> Reply:
        return await health(checks, lambda key: is_known, workers=workers)(request)

    reply = asyncio.run(ask())
    return reply.status, json.loads(reply.body), asked


@pytest.mark.parametrize(
    ("found", "status"),
    [
        pytest.param({"store": None, "audit": None}, 200, id="all is well"),
        pytest.param({"store": "no room", "audit": None}, 503, id="the store"),
        pytest.param({"store": None, "audit": "no room"}, 503, id="the records"),
        pytest.param({"store": None, "gateway:orders": "refused"}, 200, id="a gateway"),
        pytest.param({"store": "no room", "gateway:orders": None}, 503, id="the store, not the gateway"),
    ],
)
def test_what_matters_is_503_where_it_fails_and_a_gateway_does_not(
    found: dict[str, str | None], status: int
) -> None:
    answer, body, _ = answered(found)
    assert answer == status
    assert body["status"] == ("ok" if status == 200 else "failed")
    for name, problem in found.items():
        failed = {"status": "failed", "problem": problem}
        assert body["checks"][name] == ({"status": "ok"} if problem is None else failed)


@pytest.mark.parametrize(
    ("query", "deep"), [(b"", False), (b"deep=1", True), (b"deep=0", False), (b"deep=1&deep=2", False)]
)
def test_a_deep_check_is_asked_for_with_one(query: bytes, deep: bool) -> None:
    assert answered({}, query)[2] == [deep]


def test_a_stranger_learns_that_something_is_wrong_and_not_what_and_makes_us_call_nobody() -> None:
    status, body, asked = answered({"store": "/srv/portbook.db: no room"}, is_known=False)
    assert (status, body["checks"], asked) == (503, {"store": {"status": "failed"}}, [False])
    status, body, asked = answered({"store": None}, b"deep=1", is_known=False)
    assert (status, body["error"]["code"], asked) == (401, "UNAUTHORIZED", [])


class TwoWorkers:
    """Two workers, of which the other one may fail."""

    def __init__(self, problem: str | None) -> None:
        self._problem = problem

    def problem(self) -> str | None:
        return self._problem

    def as_data(self) -> JSONObject:
        return {"wanted": 2, "ready": 1}


def test_a_worker_that_fails_is_told_by_all_and_one_that_restarts_takes_nothing_down() -> None:
    status, body, _ = answered({"store": None}, workers=TwoWorkers(None))
    assert (status, body["checks"]["workers"], body["workers"]) == (
        200,
        {"status": "ok"},
        {"wanted": 2, "ready": 1},
    )
    status, body, _ = answered({"store": None}, workers=TwoWorkers("worker 2: audit: no room"))
    assert (status, body["status"]) == (503, "failed")
    assert body["checks"]["workers"] == {"status": "failed", "problem": "worker 2: audit: no room"}
    _, body, _ = answered({"store": None}, workers=TwoWorkers("worker 2: audit"), is_known=False)
    assert body["checks"]["workers"] == {"status": "failed"}
