"""When a tool promises a different effect than its parts say."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.scan.promised_effect import find_effect
from portbook.scan.scanned_text_and_finding import Tier

READS = {"readOnlyHint": True}


def definition(description: str = "", hints: dict[str, Any] | None = None, *arguments: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict.fromkeys(arguments, True)}
    return {"description": description, "annotations": hints or {}, "inputSchema": schema}


@pytest.mark.parametrize(
    ("name", "parts", "pointer"),
    [
        ("delete_file", definition(hints=READS), "/annotations/readOnlyHint"),
        ("deleteFile", definition(hints=READS), "/annotations/readOnlyHint"),
        ("delete_file", definition(), None),
        ("list_deleted", definition(hints=READS), None),
        ("drop_rate", definition(hints=READS), None),
        ("look", definition("Looks, and then erases it.", READS), "/annotations/readOnlyHint"),
        ("look", definition("Looks, and deletes nothing.", READS), None),
        ("look", definition("Looks, with an update and delete date.", READS), None),
        ("look", definition("Look, and delete the file.", READS), "/annotations/readOnlyHint"),
        ("look", definition("Looks, and publishes it.", READS), "/annotations/readOnlyHint"),
        ("look", definition("Looks, and sends a request to the index.", READS), None),
        (
            "tidy",
            definition("Truncates the log tables.", {"destructiveHint": False}),
            "/annotations/destructiveHint",
        ),
        ("tidy", definition("Drops unused items of a cache.", {"destructiveHint": False}), None),
        (
            "count",
            definition("Counts, and posts it to a webhook.", {"openWorldHint": False}),
            "/annotations/openWorldHint",
        ),
        ("wipe_disk", definition(hints={"destructiveHint": False}), "/annotations/destructiveHint"),
        ("add", definition("Adds.", None, "chatHistory"), "/inputSchema/properties/chatHistory"),
        ("ask", definition("Asks a model.", None, "prompt"), None),
        ("add", definition("Changes nothing.", None, "cmd"), "/inputSchema/properties/cmd"),
        ("add", definition("Adds.", None, "cmd"), None),
        ("add", definition("Works offline.", None, "post_url"), "/inputSchema/properties/post_url"),
    ],
)
def test_a_contradiction_is_a_hard_finding(name: str, parts: dict[str, Any], pointer: str | None) -> None:
    found = [(each.pointer, each.tier) for each in find_effect(name, parts)]
    assert found == ([(pointer, Tier.HARD)] if pointer else [])


def test_a_promise_against_a_hint_is_soft() -> None:
    (found,) = find_effect("look", definition("Only reads.", {"destructiveHint": True}))
    assert (found.tier, found.pointer) == (Tier.SOFT, "/description")


@pytest.mark.parametrize(("words", "is_found"), [("Executed on the host.", True), ("To explain.", False)])
def test_a_command_that_a_reading_tool_runs_is_found(words: str, is_found: bool) -> None:
    parts = definition("Looks.", READS)
    parts["inputSchema"]["properties"]["command"] = {"type": "string", "description": words}
    assert [each.pointer for each in find_effect("look", parts)] == [
        "/inputSchema/properties/command"
    ] * is_found
