"""`/mcp`: one address for both eras, with the statuses that each of them wants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import EVERY_REVISION, META, STATELESS_META, handshake
from support.mcp_http_client import EVERYTHING, run, serving

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": STATELESS_META}}
NOTICE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake("2025-11-25")}
STATELESS = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}


@pytest.mark.covers("design.mcp-http.both-eras")
@pytest.mark.parametrize("revision", EVERY_REVISION)
def test_a_tool_is_listed_and_called_in_every_revision(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            await client.open(revision)
            assert "echo" in {tool["name"] for tool in (await client.result("tools/list"))["tools"]}
            result = await client.result("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
            assert result["content"] == [{"type": "text", "text": "hello"}]

    run(main())


# What is sent, with which headers ("-" for none), and the status it gets.
REFUSALS: dict[str, tuple[object, dict[str, str], int]] = {
    "another site's host": (PING, {"host": "evil.example.com"}, 403),
    "another site's page": (PING, {"origin": "http://evil.example.com"}, 403),
    "no content type": (PING, {"content-type": "-"}, 415),
    "text": (PING, {"content-type": "text/plain"}, 415),
    "nothing that can be answered": (PING, {"accept": "image/png"}, 406),
    "nothing that it would like": (PING, {"accept": "*/*;q=0"}, 406),
    "no JSON": (b"{", {}, 400),
    "too long": (b" " * 1_048_577, {}, 413),
    "no message": (b"[]", {}, 400),
    "no session and no revision": ({**PING, "method": "tools/list"}, {}, 400),
    "a session that is not there": (PING, {"mcp-session-id": "no-such"}, 404),
    "an unknown revision": (PING, {"mcp-protocol-version": "1999-01-01"}, 400),
    "a revision that its body does not name": (PING, STATELESS, 404),
    "another method than the header's": (LIST, {**STATELESS, "mcp-method": "prompts/list"}, 400),
    "no header for the method": (LIST, {"mcp-protocol-version": "2026-07-28"}, 400),
}


@pytest.mark.covers("design.mcp-http.statuses")
@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_served_has_its_status_and_is_recorded(tmp_path: Path, case: str) -> None:
    body, headers, status = REFUSALS[case]

    async def main() -> None:
        async with serving(tmp_path) as client:
            exchange = await client.send(body, **headers)
            assert exchange.status == status
            assert "error" in exchange.json or exchange.json["result"]["ok"] is False
            assert len(client.sink.records) == 1

    run(main())


@pytest.mark.parametrize("message", [NOTICE, {"jsonrpc": "2.0", "id": "x", "result": {}}])
def test_what_nobody_waits_for_has_a_status_that_says_whether_it_was_taken(
    tmp_path: Path, message: object
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            refused = await client.send(message)
            assert (refused.status, refused.body) == (400, b"")
            assert [record["error"]["reason"] for record in client.sink.records] == ["IGNORED"]
            await client.open("2025-11-25")
            assert (await client.send(NOTICE)).status == 202

    run(main())


def test_other_verbs_are_refused_with_those_that_are_not(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            refused = await client.send(method="PUT")
            assert (refused.status, refused.headers["allow"]) == (405, "POST, GET, DELETE")
            for verb in ("GET", "DELETE"):
                assert (await client.send(method=verb)).status == 405
                assert (await client.send(method=verb, mcp_protocol_version="2026-07-28")).status == 405

    run(main())


@pytest.mark.parametrize(
    "accept", ["application/json", "text/event-stream", "*/*", "-", "application/json;q=0, text/event-stream"]
)
def test_an_answer_has_a_form_that_its_reader_allows(tmp_path: Path, accept: str) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            exchange = await client.send(LIST, accept=accept, **STATELESS)
            assert exchange.status == 200
            assert exchange.is_stream == ("event-stream" in accept)
            assert "tools" in exchange.messages[-1]["result"]
            greeted = await client.send(HELLO, accept=accept)
            assert greeted.is_stream == ("event-stream" in accept)
            assert greeted.messages[-1]["result"]["protocolVersion"] == "2025-11-25"
            assert greeted.headers["mcp-session-id"]

    run(main())


# -- sessions


@pytest.mark.covers("design.mcp-http.sessions")
def test_a_session_begins_with_initialize_and_ends_with_delete(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            await client.open("2025-11-25")
            assert client.session is not None
            assert len(client.session) >= 32
            assert all(0x21 <= ord(character) <= 0x7E for character in client.session)
            assert (await client.ask("ping").ended()).json["result"] == {}
            assert (await client.send(method="DELETE")).status == 204
            assert (await client.ask("ping").ended()).status == 404
            assert (await client.send(method="DELETE")).status == 404
            assert (await client.send(method="GET")).status == 404

    run(main())


def test_two_sessions_have_two_names_and_know_nothing_of_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            first = (await client.open("2025-11-25")).session
            second = (await client.open("2025-06-18")).session
            assert first != second
            assert (await client.ask("ping").ended()).status == 200
            client.session, client.revision = first, "2025-11-25"
            assert (await client.ask("ping").ended()).status == 200

    run(main())


@pytest.mark.covers("design.mcp-http.bound")
def test_a_session_is_of_no_use_with_another_key(tmp_path: Path) -> None:
    from portbook.stores.caller_keys import digest_of_key

    keys = tmp_path / "portbook.toml"
    rows = "".join(
        f'[[keys.allow]]\nname = "{name}"\nsha256 = "{digest_of_key(name)}"\n' for name in ("one", "two")
    )
    keys.write_text(rows)

    async def main() -> None:
        async with serving(tmp_path, config=keys) as client:
            client.key = "one"
            await client.open("2025-11-25")
            for key, status in (("two", 404), (None, 404), ("one", 200)):
                client.key = key
                assert (await client.ask("ping").ended()).status == status

    run(main())


@pytest.mark.parametrize("header", ["nonsense", "2025-11-25, 2025-11-25", "1999-01-01"])
def test_a_session_takes_no_message_of_an_unknown_revision(tmp_path: Path, header: str) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            await client.open("2025-11-25")
            client.revision = header
            assert (await client.ask("ping").ended()).status == 400
            assert (await client.send(method="GET")).status == 400
            client.revision = None  # not said: the one that was agreed on
            assert (await client.ask("ping").ended()).status == 200

    run(main())


@pytest.mark.covers("design.mcp-http.session-revision")
@pytest.mark.parametrize("header", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_a_session_is_served_in_its_own_revision_whichever_handshake_its_header_names(
    tmp_path: Path, header: str
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            await client.open("2025-11-25")
            listed = await client.result("tools/list")
            client.revision = header
            assert await client.result("tools/list") == listed
            listening = client.start(method="GET")
            await listening.until(lambda: listening.status == 200)
            await listening.leave()
            assert (await client.send(method="DELETE")).status == 204

    run(main())


def test_a_session_takes_no_message_without_a_handshake(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            await client.open("2025-11-25")
            refused = await client.send(PING, mcp_protocol_version="2026-07-28", mcp_method="ping")
            assert (refused.status, refused.json["error"]["code"]) == (400, -32020)
            stateless = await client.send(LIST, **STATELESS)
            assert "tools" in stateless.json["result"]  # it names its revision itself, and needs no session

    run(main())


def test_two_keys_are_none(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, **{"keys.required": True}) as client:
            refused = await client.send(PING, mcp_session_id="A" * 43, authorization="Bearer one")
            assert refused.status == 401  # whether there is such a session is nobody's business

    run(main())


def test_a_batch_is_answered_in_the_revision_that_has_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            await client.open("2025-03-26")
            answered = await client.send([PING, NOTICE])
            assert answered.json == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
            assert (await client.send([NOTICE])).status == 202

    run(main())


def test_the_session_that_a_record_names_is_not_the_secret(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            await client.open("2025-11-25")
            await client.result("tools/list")
            assert client.session is not None
            said = json.dumps(client.sink.records)
            assert client.session not in said
            assert client.session[:12] not in said

    run(main())


@pytest.mark.covers("design.mcp-http.restart")
def test_a_session_goes_on_in_another_process(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-06-18", elicitation={})
            await client.result("resources/subscribe", {"uri": "test://watched-resource"})
            await client.result("logging/setLevel", {"level": "error"})
        async with serving(tmp_path, EVERYTHING) as other:
            other.session, other.revision = client.session, client.revision
            stream = other.start(method="GET")
            await stream.until(lambda: stream.status == 200)
            assert (await other.result("tools/call", {"name": "touch_watched_resource"}))["content"]
            await stream.until(lambda: bool(stream.messages))
            assert stream.messages[0]["params"] == {"uri": "test://watched-resource"}
            logged = await other.ask("tools/call", {"name": "test_tool_with_logging"}).ended()
            assert not logged.is_stream  # what was asked for before still holds
            assert (await other.send(method="DELETE")).status == 204
            await stream.ended()
        async with serving(tmp_path, EVERYTHING) as last:
            last.session, last.revision = client.session, client.revision
            assert (await last.ask("ping").ended()).status == 404

    run(main())


# -- streams


def test_a_stream_of_a_session_tells_of_changes(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            stream = client.start(method="GET")
            await stream.until(lambda: stream.status == 200)
            await client.result("tools/call", {"name": "test_trigger_tool_change"})
            await client.result("tools/call", {"name": "touch_watched_resource"})
            await client.result("resources/subscribe", {"uri": "test://watched-resource"})
            await client.result("tools/call", {"name": "touch_watched_resource"})
            await client.result("resources/unsubscribe", {"uri": "test://watched-resource"})
            await client.result("tools/call", {"name": "touch_watched_resource"})
            await stream.until(lambda: len(stream.messages) == 2)
            await stream.leave()
            assert [message["method"] for message in stream.messages] == [
                "notifications/tools/list_changed",  # for two changes at once
                "notifications/resources/updated",
            ]

    run(main())


# -- headers of 2026-07-28


def _headers(**changed: str) -> dict[str, str]:
    given = {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "test_x_mcp_header",
    }
    return (
        given
        | {"mcp-param-region": "eu"}
        | {name.replace("_", "-"): value for name, value in changed.items()}
    )


# The headers that are others, the argument, and whether that is served.
MIRRORED: dict[str, tuple[dict[str, str], Any, bool]] = {
    "alike": ({}, "eu", True),
    "with spaces around": ({"mcp_name": "  test_x_mcp_header ", "mcp_param_region": " eu "}, "eu", True),
    "in base64": ({"mcp_param_region": "=?base64?ZXU=?="}, "eu", True),
    "in broken base64": ({"mcp_param_region": "=?base64?ZXU?="}, "eu", False),
    "base64 without its end is itself": ({"mcp_param_region": "=?base64?ZXU="}, "=?base64?ZXU=", True),
    "another argument": ({"mcp_param_region": "us"}, "eu", False),
    "another case": ({"mcp_param_region": "EU"}, "eu", False),
    "no header for the argument": ({"mcp_param_region": "-"}, "eu", False),
    "another name": ({"mcp_name": "echo"}, "eu", False),
    "no name": ({"mcp_name": "-"}, "eu", False),
    "another revision": ({"mcp_protocol_version": "2025-11-25"}, "eu", False),
}


@pytest.mark.covers("design.mcp-http.headers")
@pytest.mark.parametrize("case", MIRRORED)
def test_headers_say_what_the_body_says_or_the_call_does_not_run(tmp_path: Path, case: str) -> None:
    changed, region, is_served = MIRRORED[case]
    params = {"name": "test_x_mcp_header", "arguments": {"region": region}, "_meta": STATELESS_META}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            exchange = await client.send(message, **_headers(**changed))
            if is_served:
                assert exchange.json["result"]["content"][0]["text"] == region
            else:
                assert (exchange.status, exchange.json["error"]["code"]) == (400, -32020)
                assert exchange.json["id"] == 7
                assert client.sink.records[-1]["error"]["executed"] is False

    run(main())


def test_an_unsupported_revision_is_named_beside_those_that_are_supported(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            meta = {**STATELESS_META, META + "protocolVersion": "2099-01-01"}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
            exchange = await client.send(message, mcp_protocol_version="2099-01-01", mcp_method="tools/list")
            assert (exchange.status, exchange.json["error"]["code"]) == (400, -32022)
            data = exchange.json["error"]["data"]
            assert (data["requested"], data["supported"]) == ("2099-01-01", ["2026-07-28"])

    run(main())


def test_a_client_that_shook_hands_is_told_of_revisions_that_it_can_use(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            refused = await client.send(PING, mcp_protocol_version="1999-01-01")
            assert refused.json["error"]["data"]["supported"] == list(EVERY_REVISION)
            await client.open("2025-06-18")
            refused = await client.send(PING, mcp_protocol_version="1999-01-01")
            assert (refused.status, refused.json["error"]["code"]) == (400, -32022)
            assert refused.json["error"]["data"]["supported"] == ["2025-06-18"]

    run(main())


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"]
)
def test_what_2026_07_28_no_longer_has_is_unknown_there(tmp_path: Path, method: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            exchange = await client.ask(method).ended()
            assert (exchange.status, exchange.json["error"]["code"]) == (404, -32601)

    run(main())


def test_what_lacks_its_meta_is_told_so_with_its_id(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            for params in ({}, {"_meta": {META + "protocolVersion": "2026-07-28"}}):
                message = {"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": params}
                exchange = await client.send(message, **STATELESS)
                assert (exchange.status, exchange.json["error"]["code"]) == (400, -32602)
                assert exchange.json["id"] == 9

    run(main())


# -- keys


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_without_a_key_nothing_is_served_and_the_status_says_so(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, **{"keys.required": True}) as client:
            client.revision = revision
            if revision == "2026-07-28":
                exchange = await client.ask("tools/list").ended()
            else:
                exchange = await client.send(HELLO)
            assert exchange.status == 401
            assert exchange.headers["www-authenticate"] == "Bearer"
            assert "mcp-session-id" not in exchange.headers

    run(main())
