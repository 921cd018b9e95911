"""Credentials of an operation's own in its request, and what is noted where one was missing."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.apis.gateway import Login, Secret
from portbook.errors import Failed, Reason
from portbook.tools.http_operation import CredentialUse, Parameter, ParameterPlace
from support.http_scene import Scene, play
from support.scripted_api import answer

LOGINS = {"logins": (("key", Login(Secret(env="KEY"))), ("sid", Login(Secret(env="SID"))))}
ENVIRON = {"KEY": "k/1", "SID": "s-1"}


async def call(scene: Scene) -> None:
    await scene.call({"id": "A-1", "theme": "dark"})


@pytest.mark.parametrize(
    ("path", "target"),
    [("/orders/{id}", "/orders/A-1?api_key=k%2F1"), ("/orders/{id}?v=2", "/orders/A-1?v=2&api_key=k%2F1")],
)
def test_a_credential_joins_the_query_and_the_one_cookie_header(path: str, target: str) -> None:
    options: dict[str, Any] = {
        "path": path,
        "parameters": (Parameter("theme", ParameterPlace.COOKIE, "theme"),),
        "credentials": (CredentialUse("key", "query", "api_key"), CredentialUse("sid", "cookie", "sid")),
    }
    upstream = play(call, answer(b"{}"), gateway=LOGINS, environ=ENVIRON, **options)
    [asked] = upstream.asked
    assert asked.target == target
    assert asked.headers["cookie"] == "theme=dark; sid=s-1"


@pytest.mark.parametrize(
    ("status", "lacks", "note"),
    [
        (401, "", "the answer has the status 401"),
        (
            401,
            "key (apiKey)",
            "the answer has the status 401; http.orders.credentials has nothing for key (apiKey)",
        ),
        (
            403,
            "key (apiKey)",
            "the answer has the status 403; http.orders.credentials has nothing for key (apiKey)",
        ),
        (400, "key (apiKey)", "the answer has the status 400"),
    ],
)
def test_where_an_api_denies_a_call_the_record_has_the_missing_credential(
    status: int, lacks: str, note: str
) -> None:
    async def denied(scene: Scene) -> None:
        with pytest.raises(Failed) as caught:
            await scene.call({"id": "A-1"})
        assert caught.value.note == note
        assert (caught.value.reason is Reason.UPSTREAM_DENIED) is (status != 400)
        assert "credentials" not in str(caught.value.happened)

    play(denied, answer(b"{}", status), lacks=lacks)
