"""The example's tools against its gateway, a real process: keys, latency, 429, 500, redirects, hangs."""

from __future__ import annotations

import asyncio
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.http_table import read_http
from portbook.errors import Failed, Reason, Refused
from portbook.executors.http import HttpExecutor
from portbook.ids import RandomIds
from portbook.model import JSON, Identity, JSONObject, Run
from portbook.net.destinations import Destinations
from portbook.tools.catalog import Catalog
from support.example_gateway import APIM, gateway_of, seen_by

EXTRA = """
[http.orders.tools.{name}]
method = "{method}"
path = "/bad-days/{kind}"
"""


class Desk:
    """The example's tools, and a few more for the gateway's bad days."""

    def __init__(self, folder: Path, url: str) -> None:
        text = (folder / "portbook.toml").read_text("utf-8")
        for kind in ("late", "broken", "moved", "elsewhere", "large", "page", "cut"):
            text += EXTRA.format(name=kind, kind=kind, method="GET")
        text += EXTRA.format(name="post_broken", kind="broken", method="POST")
        settings = tomllib.loads(text)
        self.url = url
        self.found = read_http(settings["http"], {}, folder, ValueError)
        self.catalog = Catalog(self.found.specs)
        self.destinations = Destinations(settings["policy"]["allowed_domains"])
        self.max_attempts = settings["policy"]["max_attempts"]

    def call(self, name: str, arguments: JSONObject | None = None, **options: Any) -> JSON:
        """Call a tool as the pipeline would, with an executor of its own."""
        tool = self.catalog.find(f"orders.{name}")
        assert tool is not None
        arguments = arguments or {}
        assert tool.input.is_valid(arguments)
        given = {
            "timeout_ms": tool.spec.timeout_ms or 20_000,
            "identity": Identity.read(RandomIds().name(b"")),
            **options,
        }

        async def main() -> JSON:
            executor = HttpExecutor(
                self.found.gateways,
                destinations=self.destinations,
                max_attempts=self.max_attempts,
                environ={},
            )
            try:
                result = await executor.execute(tool, arguments, Run(**given))
            finally:
                await executor.close()
            assert tool.output.is_valid(result)
            return result

        return asyncio.run(main())

    def ending(self, name: str, arguments: JSONObject | None = None, **options: Any) -> Failed | Refused:
        with pytest.raises((Failed, Refused)) as caught:
            self.call(name, arguments, **options)
        return caught.value

    @property
    def seen(self) -> list[tuple[str, str]]:
        return [(request["method"], request["path"]) for request in seen_by(self.url)]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = Path(
        shutil.copytree(APIM, tmp_path / "apim", ignore=shutil.ignore_patterns("runs", "__pycache__"))
    )
    with gateway_of(folder) as url:
        assert url is not None
        yield Desk(folder, url)


def test_an_order_comes_through_the_gateway(desk: Desk) -> None:
    identity = Identity("request-1", "a" * 32, "b" * 32)
    order = desk.call("get_order", {"id": "A-1001"}, identity=identity, session="s-1", correlation="c-1")
    assert order == {"id": "A-1001", "customer": "Ada", "cents": 1990, "state": "open"}
    assert seen_by(desk.url)[0]["headers"] == {
        "x-request-id": "request-1",
        "x-trace-id": "a" * 32,
        "x-correlation-id": "c-1",
        "x-session-id": "s-1",
        "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
    }


def test_arguments_arrive_where_they_belong(desk: Desk) -> None:
    assert desk.call("find_orders", {"state": ["sent", "open"]}) == {
        "orders": [
            {"id": "A-1001", "customer": "Ada", "cents": 1990, "state": "open"},
            {"id": "A-1002", "customer": "Grace", "cents": 250000, "state": "sent"},
        ]
    }
    assert desk.call("refund", {"order": "A-1001", "cents": 5}) == {
        "order": "A-1001",
        "cents": 5,
        "refunded": True,
    }
    assert desk.call("delete_order", {"id": "A-1001"}) is None
    assert desk.seen == [
        ("GET", "/orders?state=sent&state=open"),
        ("POST", "/refunds"),
        ("DELETE", "/orders/A-1001"),
    ]
    assert seen_by(desk.url)[1]["body"] == '{"order":"A-1001","cents":5}'


def test_a_wrong_key_is_the_gateways_401(desk: Desk) -> None:
    (Path(desk.found.gateways[0].subscription_key.file)).write_text("another-key")  # type: ignore[union-attr, arg-type]
    ending = desk.ending("get_order", {"id": "A-1001"})
    assert (ending.reason, ending.is_retryable) == (Reason.UPSTREAM_DENIED, False)
    assert ending.details == {"happened": "the answer has the status 401", "upstream_status": 401}
    assert "key" not in str(ending.note)


ENDINGS = [
    # tool, reason, status, what happened, retryable, how often the gateway saw it
    ("broken", Reason.UPSTREAM_ERROR, 500, "the answer has the status 500", True, 3),
    ("post_broken", Reason.UPSTREAM_ERROR, 500, "the answer has the status 500", True, 1),
    ("busy", Reason.UPSTREAM_ERROR, 429, "the answer has the status 429", True, 1),
    ("elsewhere", Reason.UPSTREAM_ERROR, 302, "it redirects to a different destination", False, 1),
    ("large", Reason.UPSTREAM_ERROR, 200, "the answer is larger than", False, 1),
    ("page", Reason.UPSTREAM_ERROR, 200, "the content type of the answer is not", False, 1),
    ("cut", Reason.UPSTREAM_ERROR, None, "the connection was closed in the middle of the answer", True, 3),
    ("never", Reason.TIMEOUT, None, "no answer arrived in time", True, 1),
]


@pytest.mark.covers("002.execution.through-a-gateway")
@pytest.mark.parametrize(
    ("name", "reason", "status", "happened", "may_pass", "times"), ENDINGS, ids=[row[0] for row in ENDINGS]
)
def test_a_bad_day_of_the_gateway_is_told_as_what_it_is(
    desk: Desk, name: str, reason: Reason, status: int | None, happened: str, may_pass: bool, times: int
) -> None:
    ending = desk.ending(name)
    assert isinstance(ending, Failed)
    assert (ending.reason, ending.is_retryable) == (reason, may_pass)
    assert ending.details.get("upstream_status") == status
    assert happened in ending.sentence
    assert ending.sentence.endswith("Check whether it had effects before you retry.")
    assert ending.note == ending.details["happened"] == ending.happened
    assert "hunter2" not in f"{ending.note}{ending.findings}"
    assert len(desk.seen) == times


def test_a_late_answer_is_waited_for_and_a_flaky_one_asked_for_again(desk: Desk) -> None:
    assert desk.call("late") == {"late": True}
    assert desk.call("flaky") == {"tries": 2}
    assert desk.seen == [("GET", "/bad-days/late"), *[("GET", "/bad-days/flaky")] * 2]


def test_a_redirect_that_stays_is_followed(desk: Desk) -> None:
    assert desk.call("moved") == {"id": "A-1001", "customer": "Ada", "cents": 1990, "state": "open"}
    assert desk.seen == [("GET", "/bad-days/moved"), ("GET", "/orders/A-1001")]


@pytest.mark.parametrize("entries", [[], ["127.0.0.1:1"], ["api.example.com"], ["*"]])
def test_the_gateway_sees_nothing_of_a_call_that_is_denied(desk: Desk, entries: list[str]) -> None:
    desk.destinations = Destinations(entries)
    ending = desk.ending("get_order", {"id": "A-1001"})
    assert isinstance(ending, Refused)
    assert ending.reason is Reason.POLICY_VIOLATION
    assert desk.seen == []


def test_the_gateway_sees_nothing_of_arguments_that_cannot_be_sent(desk: Desk) -> None:
    ending = desk.ending("get_order", {"id": "../_seen"})
    assert isinstance(ending, Refused)
    assert ending.reason is Reason.BAD_ARGUMENTS
    assert desk.seen == []
