"""HTTP tools: what goes out, what comes back, and every way in which nothing does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.gateway import Gateway, Secret
from portbook.errors import Failed, Reason, Refused
from portbook.executors.http import HttpExecutor
from portbook.model import JSONObject
from portbook.net.destinations import Destinations
from portbook.net.dns_and_dial import Dialler
from portbook.net.http_client import HttpClient
from portbook.tools.catalog import Tool
from support.http_scene import IDENTITY, Scene, failure, make_run, make_tool, play, result
from support.scripted_api import HANG, Answer, Certificates, Conversation, Upstream, answer

CORPUS: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "corpora" / "ssrf_urls.json").read_text("utf-8")
)


# --- what goes out


@pytest.mark.covers("002.execution.tracing-headers")
def test_a_request_says_which_call_it_belongs_to() -> None:
    async def main(scene: Scene) -> None:
        await scene.call(session="s-1", correlation="c-1")
        await scene.call()

    first, second = play(main).asked
    assert (first.method, first.target) == ("GET", "/orders/A-1")
    assert {name: first.headers[name] for name in first.headers if name != "host"} == {
        "user-agent": first.headers["user-agent"],
        "accept": "application/json",
        "accept-encoding": "identity",
        "x-request-id": IDENTITY.request,
        "x-trace-id": IDENTITY.trace,
        "x-correlation-id": "c-1",
        "x-session-id": "s-1",
        "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
    }
    assert first.headers["user-agent"].startswith("portbook/")
    assert second.headers["x-correlation-id"] == IDENTITY.trace
    assert "x-session-id" not in second.headers


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("s\r\nX-Admin: 1", "sX-Admin: 1"),
        ("s\nb", "sb"),
        ("s\x00\x7f\u2028é", "s"),
        ("  s  ", "s"),
        ("\r\n", None),
        ("", None),
        ("x" * 1000, "x" * 256),
    ],
)
def test_a_callers_own_words_cannot_add_a_header(given: str, sent: str | None) -> None:
    async def main(scene: Scene) -> None:
        await scene.call(session=given, correlation=given or None)

    headers = play(main).asked[0].headers
    assert headers.get("x-session-id") == sent
    assert headers.get("x-correlation-id") == (sent if given else IDENTITY.trace)
    assert "x-admin" not in headers


def test_arguments_go_into_a_json_body() -> None:
    _, upstream = result(method="POST", path="/orders", arguments={"cents": 5})
    asked = upstream.asked[0]
    assert (asked.method, asked.target, asked.body) == ("POST", "/orders", b'{"cents":5}')
    assert (asked.headers["content-type"], asked.headers["content-length"]) == ("application/json", "11")


def test_a_body_has_the_content_type_of_its_operation() -> None:
    _, upstream = result(method="PATCH", path="/orders", request="application/merge-patch+json")
    assert upstream.asked[0].headers["content-type"] == "application/merge-patch+json"


def test_a_post_without_a_body_says_so() -> None:
    _, upstream = result(method="POST", path="/orders", has_body=False)
    headers = upstream.asked[0].headers
    assert headers["content-length"] == "0"
    assert "content-type" not in headers


def test_credentials_and_fixed_headers_are_added() -> None:
    gateway = {
        "headers": (("X-Plain", "plain"),),
        "subscription_key": Secret(env="KEY"),
        "bearer": Secret(env="TOKEN"),
    }
    _, upstream = result(gateway=gateway, environ={"KEY": "the-key", "TOKEN": "the-token"})
    headers = upstream.asked[0].headers
    assert headers["x-plain"] == "plain"
    assert headers["ocp-apim-subscription-key"] == "the-key"
    assert headers["authorization"] == "Bearer the-token"


@pytest.mark.covers("002.approval.kept-where-nothing-was-sent")
def test_a_missing_credential_refuses_the_call_before_anything_is_sent() -> None:
    async def main(scene: Scene) -> None:
        with pytest.raises(Refused) as caught:
            await scene.call()
        assert (caught.value.reason, caught.value.is_retryable) == (Reason.UPSTREAM_ERROR, False)
        assert caught.value.note == "http.orders.bearer: the environment variable TOKEN is not set"

    assert play(main, gateway={"bearer": Secret(env="TOKEN")}).connections == 0


def test_the_executor_knows_every_secret_and_what_is_missing() -> None:
    seen: list[str] = []
    executor = HttpExecutor(
        [
            Gateway("a", "https://a.example", bearer=Secret(env="A")),
            Gateway("b", "https://b.example", subscription_key=Secret(env="B")),
        ],
        destinations=Destinations(),
        environ={"A": "secret-a"},
        notice=seen.append,
    )
    assert executor.problems() == ["http.b.subscription_key: the environment variable B is not set"]
    assert executor.secrets() == seen == ["secret-a"]


# --- what comes back


@pytest.mark.covers("002.execution.response-cap")
@pytest.mark.parametrize("options", [{"gateway": {"max_response_bytes": 10}}, {"max_response_bytes": 10}])
def test_an_answer_that_is_too_large_is_no_result(options: dict[str, Any]) -> None:
    ending, _ = failure(answer(b'"1234567890"'), **options)
    assert (ending.reason, ending.is_retryable) == (Reason.UPSTREAM_ERROR, False)
    assert ending.note == "the answer is larger than 10 bytes"


def test_a_connection_that_breaks_may_be_tried_again_by_the_caller() -> None:
    async def cut(conversation: Conversation) -> None:
        conversation.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        conversation.writer.close()

    ending, upstream = failure(cut, method="POST")
    assert (ending.reason, ending.is_retryable) == (Reason.UPSTREAM_ERROR, True)
    assert ending.details == {"happened": "the connection was closed in the middle of the answer"}
    assert len(upstream.asked) == 1


@pytest.mark.parametrize("max_attempts", [1, 2])
def test_an_api_that_is_not_there_is_an_upstream_error_of_which_nothing_ran(max_attempts: int) -> None:
    async def main(scene: Scene) -> None:
        await scene.upstream.__aexit__()
        with pytest.raises(Refused) as caught:
            await scene.call()
        assert (caught.value.reason, caught.value.is_retryable) == (Reason.UPSTREAM_ERROR, True)
        assert caught.value.note == "the connection was refused"

    play(main, max_attempts=max_attempts)


@pytest.mark.parametrize("location", [None, "/moved"], ids=["retry", "redirect"])
def test_an_api_that_is_gone_after_something_was_sent_is_a_failure(location: str | None) -> None:
    """Whatever was sent may have done something, though the last connection never came to be."""

    async def leave(conversation: Conversation) -> None:
        scenes[0].upstream._server.close()
        status, headers = (500, {}) if location is None else (302, {"Location": location})
        conversation.writer.write(answer(b"", status, Connection="close", **headers))

    async def main(scene: Scene) -> None:
        scenes.append(scene)
        with pytest.raises(Failed) as caught:
            await scene.call()
        assert (caught.value.reason, caught.value.is_retryable) == (Reason.UPSTREAM_ERROR, True)
        assert caught.value.note == "the connection was refused"

    scenes: list[Scene] = []
    assert len(play(main, leave).asked) == 1


def test_a_certificate_that_is_not_trusted_is_not_tried_again(certificates: Certificates) -> None:
    async def main() -> None:
        async with Upstream(tls=certificates.server) as upstream:
            executor = HttpExecutor(
                [Gateway("orders", upstream.url)],
                destinations=Destinations.of_base_urls([upstream.url]),
                environ={},
            )
            with pytest.raises(Refused) as caught:
                await executor.execute(make_tool(upstream.url), {"id": "A"}, make_run())
            assert (caught.value.reason, caught.value.is_retryable) == (Reason.UPSTREAM_ERROR, False)
            trusting = HttpExecutor(
                [Gateway("orders", upstream.url, ca_file=certificates.ca_file)],
                destinations=Destinations.of_base_urls([upstream.url]),
                environ={},
            )
            assert await trusting.execute(make_tool(upstream.url), {"id": "A"}, make_run()) == {}
            await trusting.close()
            for _ in range(5):
                await asyncio.sleep(0)

    asyncio.run(main())


# --- deadlines, cancellation


@pytest.mark.covers("002.execution.deadline")
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_deadline_ends_the_call_and_the_connection(method: str) -> None:
    async def main(scene: Scene) -> None:
        with pytest.raises(Failed) as caught:
            await scene.call(timeout_ms=50)
        assert (caught.value.reason, caught.value.is_retryable) == (Reason.TIMEOUT, True)
        await asyncio.wait_for(scene.upstream.left.wait(), 10)

    assert len(play(main, HANG, method=method).asked) == 1


def test_a_deadline_holds_against_an_answer_that_drips() -> None:
    async def drip(conversation: Conversation) -> None:
        conversation.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not conversation.left.is_set():
            conversation.writer.write(b" ")
            await asyncio.sleep(0.001)

    ending, _ = failure(drip, timeout_ms=50)
    assert ending.reason is Reason.TIMEOUT


def test_a_deadline_holds_while_a_name_is_resolved() -> None:
    class Never:
        async def resolve(self, host: str, port: int) -> list[str]:
            await asyncio.Event().wait()
            return []

    async def main() -> None:
        executor = HttpExecutor(
            [Gateway("orders", "https://api.example.com")],
            destinations=Destinations(["api.example.com"]),
            environ={},
            client=HttpClient(Dialler(Never())),
        )
        with pytest.raises(Refused) as caught:  # nothing was sent
            await executor.execute(make_tool("https://api.example.com"), {"id": "A"}, make_run(20))
        assert (caught.value.reason, caught.value.is_retryable) == (Reason.TIMEOUT, True)

    asyncio.run(main())


@pytest.mark.covers("002.execution.cancelled-with-the-client")
def test_a_cancelled_call_closes_its_connection() -> None:
    async def main(scene: Scene) -> None:
        calling = asyncio.ensure_future(scene.call())
        while not scene.upstream.asked:
            await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await asyncio.wait_for(scene.upstream.left.wait(), 10)

    play(main, HANG)


# --- retries

STUMBLES: list[tuple[str, Answer]] = [
    ("500", answer(b"", 500)),
    ("503", answer(b"", 503)),
    ("429", answer(b"", 429)),
    ("429 with a short wait", answer(b"", 429, Retry_After="0")),
    ("garbage", b"garbage\r\n\r\n"),
    ("a closed connection", b""),
]


@pytest.mark.parametrize(("what", "said"), STUMBLES, ids=[row[0] for row in STUMBLES])
def test_an_idempotent_call_is_tried_again(what: str, said: Answer) -> None:
    found, upstream = result(said, said, answer(b'"at last"'))
    assert found == "at last", what
    assert len(upstream.asked) == 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 3),
        ({"max_attempts": 2}, 2),
        ({"max_attempts": 1}, 1),
        ({"max_attempts": None}, 3),
        ({"max_attempts": 10}, 3),
        ({"max_attempts": 10, "gateway": {"retries": 4}}, 5),
        ({"max_attempts": 10, "gateway": {"retries": 4}, "retries": 1}, 2),
        ({"gateway": {"retries": 0}}, 1),
        ({"retries": 0}, 1),
        ({"is_idempotent": False}, 1),
        ({"method": "POST"}, 1),
        ({"method": "DELETE"}, 1),
        ({"method": "POST", "is_idempotent": True}, 3),
    ],
)
def test_a_call_is_sent_as_often_as_the_tool_the_gateway_and_policy_allow(
    options: dict[str, Any], expected: int
) -> None:
    ending, upstream = failure(answer(b"", 503), **options)
    assert (ending.details["upstream_status"], ending.is_retryable) == (503, True)
    assert len(upstream.asked) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_attempts": 1}, 1),
        ({"max_attempts": 2}, 2),
        ({"max_attempts": 3}, 3),
        ({"gateway": {"retries": 0}}, 1),
        ({"retries": 1}, 2),
        ({"method": "PUT", "is_idempotent": True, "retries": 0}, 1),
        ({"method": "POST"}, 1),
    ],
)
def test_a_kept_connection_that_is_gone_uses_up_an_attempt(options: dict[str, Any], expected: int) -> None:
    """The server took the request, and was gone before it answered: it may have done what was asked."""

    async def main(scene: Scene) -> None:
        await scene.call()
        with pytest.raises(Failed) as caught:
            await scene.call()
        assert (caught.value.reason, caught.value.is_retryable) == (Reason.UPSTREAM_ERROR, True)

    upstream = play(main, answer(), b"", **options)
    assert [asked.connection for asked in upstream.asked[:2]] == [1, 1]
    assert len(upstream.asked) - 1 == expected


def test_each_attempt_carries_the_same_ids() -> None:
    _, upstream = result(answer(b"", 500), answer())
    assert upstream.asked[0].headers == upstream.asked[1].headers


def test_nothing_is_tried_again_that_would_miss_the_deadline() -> None:
    ending, upstream = failure(answer(b"", 503, Retry_After="2"), timeout_ms=1000)
    assert ending.details["upstream_status"] == 503
    assert len(upstream.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_was_refused_is_not_tried_again(status: int) -> None:
    assert len(failure(answer(b"", status))[1].asked) == 1


# --- redirects


def test_a_get_follows_redirects_that_stay() -> None:
    async def main(scene: Scene) -> None:
        first, second = "/moved?x=1", f"{scene.upstream.url}/again#part"
        scene.upstream.answers[:0] = [answer(b"", 302, Location=first), answer(b"", 308, Location=second)]
        assert await scene.call() == "here"

    upstream = play(main, answer(b'"here"'), gateway={"bearer": Secret(env="T")}, environ={"T": "the-token"})
    assert upstream.targets == ["/orders/A-1", "/moved?x=1", "/again"]
    assert {asked.headers["authorization"] for asked in upstream.asked} == {"Bearer the-token"}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_only_reading_follows_redirects(method: str) -> None:
    ending, upstream = failure(answer(b"", 307, Location="/moved"), method=method)
    assert (ending.details["upstream_status"], ending.is_retryable) == (307, False)
    assert len(upstream.asked) == 1


def test_redirects_end_somewhere() -> None:
    ending, upstream = failure(answer(b"", 302, Location="/loop"))
    assert (ending.reason, ending.is_retryable) == (Reason.UPSTREAM_ERROR, False)
    assert upstream.targets == ["/orders/A-1"] + ["/loop"] * 5


LOCATIONS = [
    "http://127.0.0.1/", "https://evil.test/", "//127.0.0.1/", "//evil.test", "",
    "https://api.example.com@127.0.0.1/", "http:moved", "http:///moved", "javascript:alert(1)",
    "file:///etc/passwd", "http://localhost:{port}/", "https://127.0.0.1:{port}/", "http://127.1:{port}/",
    "http://127.0.0.1:{port}@evil.test/", "http://127.0.0.1:{port}\\@evil.test/", "/a b", "/é",
]  # fmt: skip


@pytest.mark.covers("002.execution.no-redirect-elsewhere")
@pytest.mark.parametrize("location", LOCATIONS, ids=ascii)
def test_a_redirect_to_anywhere_else_is_not_followed(location: str) -> None:
    async def main(scene: Scene) -> None:
        there = location.replace("{port}", str(scene.upstream.port))
        scene.upstream.answers[:] = [answer(b"", 302, Location=there), answer(b'"followed"')]
        with pytest.raises(Failed) as caught:
            await scene.call()
        assert (caught.value.reason, caught.value.is_retryable) == (Reason.UPSTREAM_ERROR, False)
        assert caught.value.details["upstream_status"] == 302

    # Listed or not: another destination is another API.
    everything = Destinations(["127.0.0.1", "localhost", "*", "*:80"])
    assert len(play(main, destinations=everything).asked) == 1


@pytest.mark.covers("002.execution.ssrf-redirects")
@pytest.mark.parametrize("case", CORPUS["redirects"], ids=lambda case: case["why"])
def test_every_redirect_of_the_corpus_is_denied(case: dict[str, Any], certificates: Certificates) -> None:
    class Here:
        async def resolve(self, host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

    async def main() -> None:
        said = [
            answer(b"", int(step.partition(" ")[0]), Location=step.partition(" ")[2])
            for step in case["chain"]
        ]
        async with Upstream(*said, answer(b'"followed"'), tls=certificates.server) as upstream:
            url = f"https://api.example.com:{upstream.port}"
            executor = HttpExecutor(
                [Gateway("orders", url, ca_file=certificates.ca_file)],
                destinations=Destinations([f"api.example.com:{upstream.port}"], ["127.0.0.0/8"]),
                environ={},
                client=HttpClient(Dialler(Here())),
            )
            with pytest.raises(Failed) as caught:
                await executor.execute(make_tool(url, path="/r"), {}, make_run())
            assert caught.value.reason is Reason.UPSTREAM_ERROR
            assert set(upstream.targets) <= {"/r", "/loop"}
            assert len(upstream.asked) <= 6
            await executor.close()
            for _ in range(5):
                await asyncio.sleep(0)

    asyncio.run(main())


# --- what may not be called


def refusal(executor: HttpExecutor, tool: Tool, arguments: JSONObject | None = None) -> Refused:
    with pytest.raises(Refused) as caught:
        asyncio.run(executor.execute(tool, arguments or {"id": "A"}, make_run()))
    return caught.value


@pytest.mark.covers("002.execution.allowlist-before-dialling")
@pytest.mark.parametrize("entries", [[], ["api.example.com"], ["127.0.0.1:1"], ["localhost"], ["*"]])
def test_a_destination_that_is_not_listed_sees_nothing(entries: list[str]) -> None:
    async def main(scene: Scene) -> None:
        with pytest.raises(Refused) as caught:
            await scene.call()
        assert caught.value.reason is Reason.POLICY_VIOLATION

    assert play(main, destinations=Destinations(entries)).connections == 0


@pytest.mark.covers("002.execution.ssrf-urls")
@pytest.mark.parametrize(
    "case",
    [case for case in CORPUS["urls"] if case["expect"].startswith("deny")],
    ids=lambda case: ascii(case["url"]),
)
def test_no_denied_url_of_the_corpus_is_ever_dialled(case: dict[str, str]) -> None:
    """Each is the base URL of a tool; names resolve to what the corpus says, or else to loopback."""
    public = "203.0.113.10"
    names = {"multi.test": [public, "127.0.0.1"], "rebind.test": ["127.0.0.1"]}
    dialled: list[str] = []

    class Names:
        async def resolve(self, host: str, port: int) -> list[str]:
            return names.get(host, ["127.0.0.1"])

    async def dial(ip: str, port: int, tls: Any, name: str) -> Any:
        dialled.append(ip)
        raise ConnectionRefusedError

    wild = case["expect"] == "deny_even_if_host_wildcard_allowed"
    executor = HttpExecutor(
        [Gateway("orders", case["url"])],
        destinations=Destinations(["*", "*.test"] if wild else ["api.example.com"]),
        environ={},
        client=HttpClient(Dialler(Names(), dial)),
    )
    assert refusal(executor, make_tool(case["url"])).reason is Reason.POLICY_VIOLATION
    assert dialled == []


@pytest.mark.parametrize(
    "first", [answer(b"", 503), answer(b"", 302, Location="/moved")], ids=["retry", "redirect"]
)
def test_a_name_that_turns_bad_after_something_was_sent_is_a_failure(
    first: bytes, certificates: Certificates
) -> None:
    """Refused means that nothing ran, and here something did."""
    answers = [["127.0.0.1"], ["169.254.169.254"]]

    class Turning:
        async def resolve(self, host: str, port: int) -> list[str]:
            return answers.pop(0)

    async def main() -> None:
        said = first.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        async with Upstream(said, tls=certificates.server) as upstream:
            url = f"https://api.example.com:{upstream.port}"
            executor = HttpExecutor(
                [Gateway("orders", url, ca_file=certificates.ca_file)],
                destinations=Destinations([f"api.example.com:{upstream.port}"], ["127.0.0.0/8"]),
                environ={},
                client=HttpClient(Dialler(Turning())),
            )
            with pytest.raises(Failed) as caught:
                await executor.execute(make_tool(url), {"id": "A"}, make_run())
            assert caught.value.reason is Reason.UPSTREAM_ERROR
            assert len(upstream.asked) == 1
            for _ in range(5):
                await asyncio.sleep(0)

    asyncio.run(main())


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert result()[0] == {}


def test_policy_comes_before_the_arguments() -> None:
    executor = HttpExecutor([Gateway("orders", "https://a.example")], destinations=Destinations(), environ={})
    assert refusal(executor, make_tool("https://a.example"), {"id": ".."}).reason is Reason.POLICY_VIOLATION


def test_arguments_that_cannot_be_sent_are_refused_and_nothing_is_sent() -> None:
    async def main(scene: Scene) -> None:
        with pytest.raises(Refused) as caught:
            await scene.call({"id": "../admin"})
        assert caught.value.reason is Reason.BAD_ARGUMENTS
        assert [finding.pointer for finding in caught.value.findings] == ["/id"]

    assert play(main).connections == 0


def test_new_rules_hold_from_the_next_call_on() -> None:
    async def main(scene: Scene) -> None:
        await scene.call()
        scene.executor.permit(Destinations(), 3)
        with pytest.raises(Refused):
            await scene.call()
        scene.executor.permit(Destinations.of_base_urls([scene.upstream.url]), 1)
        assert await scene.call() == {}

    assert len(play(main).asked) == 2


def test_a_tool_that_changed_is_called_as_it_is_now() -> None:
    async def main(scene: Scene) -> None:
        await scene.call()
        scene.tool = make_tool(scene.upstream.url, path="/v2/orders/{id}")
        await scene.call()

    assert play(main).targets == ["/orders/A-1", "/v2/orders/A-1"]


def test_gateways_that_cannot_be_reached_are_named() -> None:
    async def main() -> None:
        async with Upstream() as here:
            async with Upstream() as gone:
                pass
            gateways = [
                Gateway("here", here.url),
                Gateway("gone", gone.url),
                Gateway("forbidden", "https://evil.test"),
                Gateway("broken", "nonsense"),
            ]
            executor = HttpExecutor(
                gateways, destinations=Destinations.of_base_urls([here.url, gone.url]), environ={}
            )
            found = await executor.unreachable(5.0)
            assert set(found) == {"gone", "forbidden", "broken"}
            assert found["gone"] == "the connection was refused"
            assert here.asked == []

    asyncio.run(main())
