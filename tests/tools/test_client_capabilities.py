from __future__ import annotations

from typing import Any

import pytest

from portbook.tools.client_capabilities import missing_for

FORM: dict[str, Any] = {"method": "elicitation/create", "params": {}}
PAGE: dict[str, Any] = {"method": "elicitation/create", "params": {"mode": "url"}}
SAMPLE: dict[str, Any] = {"method": "sampling/createMessage", "params": {}}
ROOTS: dict[str, Any] = {"method": "roots/list"}


@pytest.mark.parametrize(
    ("request_", "capabilities", "missing"),
    [
        (FORM, {"elicitation": {}}, None),
        (FORM, {"elicitation": {"form": {}}}, None),
        (FORM, {}, {"elicitation": {}}),
        (FORM, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (PAGE, {"elicitation": {"url": {}}}, None),
        (PAGE, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        (PAGE, {}, {"elicitation": {"url": {}}}),
        (SAMPLE, {"sampling": {}}, None),
        (SAMPLE, {"roots": {}}, {"sampling": {}}),
        (ROOTS, {"roots": {"listChanged": True}}, None),
        (ROOTS, {"roots": None}, {"roots": {}}),
    ],
)
def test_a_client_must_declare_what_it_is_asked_for(
    request_: dict[str, Any], capabilities: dict[str, Any], missing: dict[str, Any] | None
) -> None:
    assert missing_for(request_, capabilities) == missing
