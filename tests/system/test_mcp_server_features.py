"""What servers offer beside tools comes through: resources, prompts, completions, changes, logs, skills."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.mcp_http_peer import EVERY_DOOR, PeerOf
from support.mcp_peer import Peer, small_server, table
from support.portbook_process import PORTBOOK, TESTS, http_server
from support.running_processes import wait_until

ERAS = ("2025-11-25", "2026-07-28")
OFFERING = f"command = {json.dumps([sys.executable, str(TESTS / 'fixtures' / 'offering_server.py')])}"


@pytest.fixture(params=EVERY_DOOR)
def peer_over(request: pytest.FixtureRequest) -> PeerOf:
    return EVERY_DOOR[request.param]


def heard(peer: Peer, method: str) -> list[Any]:
    """The params of the requests of a method that the server got."""
    return [params for name, params in json.loads(peer.text("box__heard")) if name == method]


@pytest.mark.covers("design.servers.completions")
@pytest.mark.parametrize("revision", ERAS)
def test_a_completion_has_its_context_and_says_how_many_there_are(
    tmp_path: Path, peer_over: PeerOf, revision: str
) -> None:
    with peer_over(tmp_path, table("box", OFFERING), revision) as peer:
        for reference, own in (
            ({"type": "ref/prompt", "name": "box__greet"}, "greet"),
            ({"type": "ref/resource", "uri": "notes://{day}"}, "notes://{day}"),
        ):
            asked = {"ref": reference, "argument": {"name": "tongue", "value": "e"}}
            context = {"context": {"arguments": {"who": "Ada"}}}
            told = peer.answer("completion/complete", {**asked, **context})["result"]["completion"]
            assert json.loads(told["values"][0]) == [own, {"who": "Ada"}]
            assert (told["total"], told["hasMore"]) == (500, True)
            told = peer.answer("completion/complete", asked)["result"]["completion"]
            assert json.loads(told["values"][0]) == [own, None]


@pytest.mark.covers("design.servers.subscriptions")
def test_a_subscription_reaches_the_server_and_ends_there_with_the_last_client(
    tmp_path: Path, peer_over: PeerOf
) -> None:
    today = {"uri": "notes://today"}
    with peer_over(tmp_path, table("box", OFFERING)) as peer:
        for _ in range(2):
            assert peer.answer("resources/subscribe", today)["result"] == {}
        assert heard(peer, "resources/subscribe") == [today]
        peer.call("box__tell", {"method": "notifications/resources/updated", "params": today})
        wait_until(lambda: "notifications/resources/updated" in _methods(peer))
        assert heard(peer, "resources/unsubscribe") == []
        assert peer.answer("resources/unsubscribe", today)["result"] == {}
        assert heard(peer, "resources/unsubscribe") == [today]


@pytest.mark.covers("design.servers.lists")
@pytest.mark.parametrize("kind", ["resources", "prompts"])
def test_a_changed_list_of_resources_or_prompts_is_listed_anew(
    tmp_path: Path, peer_over: PeerOf, kind: str
) -> None:
    settings = table("box", OFFERING, 'on_change = { added = "accept" }')
    with peer_over(tmp_path, settings) as peer:
        assert len(peer.answer(f"{kind}/list")["result"][kind]) == 1
        peer.heard.clear()
        peer.call("box__tell", {"method": f"notifications/{kind}/list_changed"})
        wait_until(lambda: f"notifications/{kind}/list_changed" in _methods(peer))
        assert len(peer.answer(f"{kind}/list")["result"][kind]) == 2


@pytest.mark.covers("design.servers.logs")
def test_each_client_hears_the_levels_that_it_wants(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, table("small", small_server())) as peer:
        for level, is_heard in (("error", False), ("warning", True)):
            assert peer.answer("logging/setLevel", {"level": level})["result"] == {}
            peer.heard.clear()
            assert peer.text("small__report") == "reported"
            assert ("notifications/message" in peer.methods()) == is_heard


@pytest.mark.covers("design.servers.skills")
def test_skills_of_a_server_come_through(tmp_path: Path, peer_over: PeerOf) -> None:
    behind = tmp_path / "behind"
    (behind / "skills" / "tea").mkdir(parents=True)
    (behind / "skills" / "tea" / "SKILL.md").write_text("---\nname: tea\ndescription: Tea.\n---\nBoil.\n")
    (behind / "skills" / "tea" / "leaf.txt").write_text("green")
    program = "from portbook import Toolset\ntoolset = Toolset('brew')\n"
    program += f"toolset.skills({str(behind / 'skills')!r})\n"
    (behind / "brew.py").write_text(program)
    (behind / "portbook.toml").write_text('[python]\ntoolsets = ["brew.py"]\n')
    command = [*PORTBOOK, "serve", "--stdio", "--config", str(behind / "portbook.toml")]
    with peer_over(tmp_path, table("box", f"command = {json.dumps(command)}"), "2026-07-28") as peer:
        skills = peer.answer("skills/list")["result"]["skills"]
        assert [skill["uri"] for skill in skills] == ["skill://tea/SKILL.md"]
        assert peer.answer("skills/get", {"uri": "skill://tea/SKILL.md"})["result"]["skill"] == skills[0]
        files = peer.answer("resources/directory/read", {"uri": "skill://tea"})["result"]["resources"]
        assert [each["uri"] for each in files] == ["skill://tea/SKILL.md", "skill://tea/leaf.txt"]
        read = peer.answer("resources/read", {"uri": "skill://tea/leaf.txt"})["result"]["contents"]
        assert read[0]["text"] == "green"


@pytest.mark.covers("design.servers.sse")
@pytest.mark.parametrize("revision", ERAS)
def test_a_server_of_the_old_transport_is_called_where_it_is_told(
    tmp_path: Path, peer_over: PeerOf, revision: str
) -> None:
    behind, front = tmp_path / "behind", tmp_path / "front"
    behind.mkdir()
    front.mkdir()
    (behind / "portbook.toml").write_text("[server]\nlegacy_sse = true\n")
    with http_server(cwd=behind) as server:
        settings = table("far", f'url = "{server.url}/sse"', 'transport = "sse"')
        with peer_over(front, settings, revision) as peer:
            for words in ("one", "two"):
                assert peer.text("far__echo", {"text": words}) == words
        with peer_over(front, table("far", f'url = "{server.url}/sse"'), revision) as peer:
            assert "UPSTREAM_ERROR" in json.dumps(peer.call("far__echo", {"text": "x"}))  # not tried unasked


def _methods(peer: Peer) -> list[str]:
    """What the client has heard by now: every answer comes after what was sent before it."""
    peer.answer("ping")
    return peer.methods()
