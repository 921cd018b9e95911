"""Questions of a server: refused where the settings, the client or the address do not allow them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from portbook.errors import Failed
from portbook.executors.mcp_server_questions import askable


def asked(request: dict[str, Any], *, may_ask: set[str], lacks: Any = None, has_client: bool = True) -> Any:
    client = SimpleNamespace(lacks=lambda _: lacks) if has_client else None
    call = SimpleNamespace(
        run=SimpleNamespace(reach=lambda: client),
        may_ask=frozenset(may_ask),
        entry=SimpleNamespace(server="notes"),
    )
    return askable(cast("Any", call), [request]) is client


PAGE: dict[str, Any] = {"method": "elicitation/create", "params": {"mode": "url", "url": "https://a.example"}}


def test_a_question_that_may_and_can_be_asked_goes_to_the_client() -> None:
    assert asked({"method": "roots/list"}, may_ask={"roots"})
    assert asked(PAGE, may_ask={"elicitation"})


def test_a_question_is_refused_with_its_reason() -> None:
    file = {"method": "elicitation/create", "params": {"mode": "url", "url": "file:///etc/passwd"}}
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"method": "sampling/createMessage"}, {"may_ask": {"roots"}}, "mcp.notes.may_ask does not allow"),
        ({"method": "roots/list"}, {"may_ask": {"roots"}, "lacks": {}}, "the client does not offer"),
        ({"method": "roots/list"}, {"may_ask": {"roots"}, "has_client": False}, "the client does not offer"),
        (file, {"may_ask": {"elicitation"}}, "only web pages"),
    ]
    for request, known, why in cases:
        with pytest.raises(Failed) as caught:
            asked(request, **known)
        assert why in str(caught.value.details["why"])
