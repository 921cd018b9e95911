"""The table of methods is the one that the official schemas imply."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.protocol.revisions_and_methods import METHODS, Sender, method_of
from portbook.schema.official_schemas import REVISIONS
from support.official_samples import definitions

# Requests whose result has no definition of its own answer with nothing.
_EMPTY = {"PingRequest", "SetLevelRequest", "SubscribeRequest", "UnsubscribeRequest"}


def derived(revision: str) -> dict[str, tuple[str, str | None]]:
    known = definitions(revision)
    found: dict[str, tuple[str, str | None]] = {}
    for name, schema in known.items():
        method = schema.get("properties", {}).get("method", {}).get("const")
        if method is None or name == "ClientNotification":
            continue
        if name.endswith("Notification"):
            found[method] = (name, None)
        else:
            result = "EmptyResult" if name in _EMPTY else name.removesuffix("Request") + "Result"
            assert result in known, result
            found[method] = (name, result)
    return found


@pytest.mark.covers("001.methods.table")
@pytest.mark.parametrize("revision", REVISIONS)
def test_every_method_of_a_revision_is_in_the_table_with_its_definitions(revision: str) -> None:
    table = {m.name: (m.definition, m.result) for m in METHODS if method_of(m.name, revision) is m}
    assert table == derived(revision)


@pytest.mark.parametrize("revision", REVISIONS)
def test_who_sends_a_method_is_what_the_unions_say(revision: str) -> None:
    known = definitions(revision)
    senders: dict[str, set[str]] = {}
    for union, sender in (
        ("ClientRequest", "client"), ("ClientNotification", "client"),
        ("ServerRequest", "server"), ("ServerNotification", "server"),
    ):  # fmt: skip
        for definition in _members(known.get(union, {}), union):
            senders.setdefault(definition, set()).add(sender)
    for method in METHODS:
        if method_of(method.name, revision) is not method or method.definition not in senders:
            continue
        said = senders[method.definition]
        assert method.sender is (Sender.BOTH if len(said) == 2 else Sender(said.pop())), method.name


def _members(union: dict[str, Any], name: str) -> list[str]:
    if "anyOf" not in union:  # 2026-07-28 has one client notification, and writes it out in the union's place
        return ["CancelledNotification"] if name == "ClientNotification" else []
    return [member["$ref"].rsplit("/", 1)[1] for member in union["anyOf"]]


def test_a_method_of_another_revision_is_unknown() -> None:
    assert method_of("initialize", "2026-07-28") is None
    assert method_of("server/discover", "2025-11-25") is None
    assert method_of("no/such", "2025-11-25") is None
