"""What an API says against a request: told as data at every door, and in no message and no record."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.decoding_api import SECRET, DecodingApi, decoding_api
from support.every_door import DOORWAYS, Asked, Doorway
from support.portbook_process import run

SETTINGS = """
[docs]
enabled = false

[http.shop]
base_url = "{url}"
retries = 0
{more}
[http.shop.tools.order]
method = "POST"
path = "/status/{{status}}"

[http.shop.tools.find]
method = "GET"
path = "/status/{{status}}"
"""

EXPLAINED = {"error": "no such size", "field": "/size", "password": "[redacted]", "says": "canary-upstream"}


@pytest.fixture(scope="module")
def api() -> Iterator[DecodingApi]:
    with decoding_api() as served:
        yield served


def make(folder: Path, api: DecodingApi, more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "portbook.toml").write_text(SETTINGS.format(url=api.url, more=more))
    return folder


@pytest.fixture(scope="module", params=DOORWAYS)
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, api: DecodingApi
) -> Iterator[tuple[Doorway, Path]]:
    folder = make(tmp_path_factory.mktemp("errors"), api)
    with contextlib.ExitStack() as opened:
        yield opened.enter_context(DOORWAYS[request.param](folder, None)), folder


def told(body: bytes) -> tuple[dict[str, Any], str]:
    """Return what a program reads of a failure, and every text for people, in whichever dialect."""
    answer = json.loads(body)
    if "status" in answer:
        return answer["error"]["details"], answer["error"]["message"]
    if "error" in answer:
        data = answer["error"]["data"]
        return data, f"{answer['error']['message']}{data.get('hint', '')}{data.get('happened', '')}"
    result = answer["result"]
    stated = result["_meta"]["portbook/error"]
    assert stated["code"] == result["_meta"]["portbook/refusal"]["reason"]
    if "upstream_body" in stated["data"]:
        assert json.loads(result["content"][1]["text"]) == stated["data"]["upstream_body"]
    return stated["data"], result["content"][0]["text"]


REASONS = [
    ("400", "UPSTREAM_REJECTED"),
    ("401", "UPSTREAM_DENIED"),
    ("403", "UPSTREAM_DENIED"),
    ("404", "UPSTREAM_NOT_FOUND"),
    ("409", "UPSTREAM_REJECTED"),
    ("422", "UPSTREAM_REJECTED"),
]


@pytest.mark.covers("002.execution.upstream-told")
@pytest.mark.parametrize(("status", "reason"), REASONS)
def test_a_status_has_its_reason_and_a_rejection_its_json_at_every_door(
    door: tuple[Doorway, Path], status: str, reason: str
) -> None:
    ask, folder = door
    verdict = ask(Asked("shop.order", {"status": status}))
    assert verdict.reason == reason
    details, text = told(verdict.raw)
    assert details["upstream_status"] == int(status)
    assert details.get("upstream_body") == (EXPLAINED if reason == "UPSTREAM_REJECTED" else None)
    assert "canary" not in text
    assert "effects" not in text
    assert SECRET.encode() not in verdict.raw
    files = [path.read_bytes() for path in folder.rglob("runs/**/*") if path.is_file()]
    assert any(f'"{reason}"'.encode() in data for data in files)
    assert not any(b"canary-upstream" in data or SECRET.encode() in data for data in files)


def test_a_failure_of_a_read_does_not_speak_of_possible_effects(door: tuple[Doorway, Path]) -> None:
    ask, _ = door
    reading, writing = (ask(Asked(f"shop.{tool}", {"status": "503"})).raw for tool in ("find", "order"))
    assert b"Check whether it had effects" not in reading
    if (
        b"The API or server behind the tool failed" in writing
    ):  # an error of the envelope contract has no sentence
        assert b"The tool only reads, so there were no effects." in reading
        assert b"Check whether it had effects before you retry." in writing


def test_an_operator_can_keep_what_the_api_says(tmp_path: Path, api: DecodingApi) -> None:
    folder = make(tmp_path / "off", api, 'error_bodies = "off"')
    with DOORWAYS["POST /execute"](folder, None) as ask:
        verdict = ask(Asked("shop.order", {"status": "422"}))
    assert verdict.reason == "UPSTREAM_REJECTED"
    assert b"canary" not in verdict.raw


def test_the_command_line_shows_what_the_api_says(tmp_path: Path, api: DecodingApi) -> None:
    done = run("call", "shop.order", "status=422", cwd=make(tmp_path, api))
    message, *details = [line for line in done.err.splitlines() if "note: secrets were" not in line]
    assert (done.code, message.partition(": the answer has the status 422. ")[::2]) == (
        2,
        (
            "portbook: INVALID_INPUT: The API behind the tool rejected the request",
            (
                "Change the arguments; after a conflict, look at the present state first. "
                "upstream_body says why, if the API explained it."
            ),
        ),
    )
    assert any(line.startswith('portbook:   upstream_body: {"error": "no such size"') for line in details)
    assert SECRET not in done.err
