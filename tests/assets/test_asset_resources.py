"""Schemas and examples as MCP resources: listed, read, judged and recorded as every resource is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.assets.library import Library
from support.asset_samples import ASSET, TONE, Write
from support.in_process_connection import EVERY_REVISION, Connection, params

SCHEMAS = "portbook://schemas/"
EXAMPLES = "portbook://examples/"


def connected(folder: Path, **settings: Any) -> Connection:
    return Connection(
        **{"assets.schemas": folder / "schemas", "assets.examples": folder / "examples", **settings},
    )


def listed(connection: Connection, revision: str) -> list[Any]:
    answer = connection.request("resources/list", params(revision))
    return [
        resource
        for resource in answer["result"]["resources"]
        if resource["uri"].startswith((SCHEMAS, EXAMPLES))
    ]


@pytest.mark.parametrize("revision", EVERY_REVISION)
@pytest.mark.usefixtures("library")
def test_every_schema_and_example_is_listed_in_every_revision(tmp_path: Path, revision: str) -> None:
    found = listed(connected(tmp_path).open(revision), revision)
    assert [(each["uri"], each["name"], each["mimeType"]) for each in found] == [
        (EXAMPLES + "SynestheticAsset_Example1.json", "SynestheticAsset_Example1.json", "application/json"),
        (EXAMPLES + "tone.json", "tone.json", "application/json"),
        (SCHEMAS + "synesthetic-asset", "synesthetic-asset", "application/schema+json"),
        (SCHEMAS + "tone", "tone", "application/schema+json"),
    ]
    assert found[1]["description"] == "An example of the schema tone."


@pytest.mark.parametrize(
    ("uri", "document"),
    [
        (SCHEMAS + "synesthetic-asset", ASSET),
        (SCHEMAS + "tone", TONE),
        (EXAMPLES + "tone.json", {"pitch": "high"}),
    ],
)
@pytest.mark.usefixtures("library")
def test_what_is_read_is_the_document_as_it_was_when_the_library_was(
    tmp_path: Path, write: Write, uri: str, document: object
) -> None:
    connection = connected(tmp_path).open("2025-11-25")
    write("schemas/tone.schema.json", {"type": "null"})
    write("examples/tone.json", {})
    [content] = connection.request("resources/read", {"uri": uri})["result"]["contents"]
    assert content["uri"] == uri
    assert json.loads(content["text"]) == document


def test_a_schema_speaks_for_itself_in_the_list(tmp_path: Path, write: Write) -> None:
    write("schemas/odd {name}.schema.json", {"title": "Odd", "description": "What it is."})
    [found] = listed(connected(tmp_path).open("2025-11-25"), "2025-11-25")
    assert found == {
        "uri": SCHEMAS + "odd%20%7Bname%7D",
        "name": "odd {name}",
        "title": "Odd",
        "description": "What it is.",
        "mimeType": "application/schema+json",
    }


@pytest.mark.parametrize(
    "uri", [SCHEMAS + "../tone", SCHEMAS + "none", EXAMPLES + "../schemas/tone.schema.json", EXAMPLES]
)
@pytest.mark.usefixtures("library")
def test_an_address_is_looked_up_and_never_reaches_the_file_system(tmp_path: Path, uri: str) -> None:
    answer = connected(tmp_path).open("2025-11-25").request("resources/read", {"uri": uri})
    assert answer["error"]["code"] == -32002


@pytest.mark.usefixtures("library")
def test_a_rule_keeps_schemas_from_being_read_and_the_record_says_so(tmp_path: Path) -> None:
    rule = {"name": "no schemas", "action": "deny", "kinds": ["resource"], "tools": [SCHEMAS + "*"]}
    connection = connected(tmp_path, **{"policy.rules": (rule,)}).open("2025-11-25")
    assert connection.client.warnings == []
    answer = connection.request("resources/read", {"uri": SCHEMAS + "tone"})
    assert answer["error"]["code"] == -31403
    assert connection.sink.records[-1]["metadata"]["toolId"] == "mcp.resource:" + SCHEMAS + "tone"
    assert "contents" in connection.request("resources/read", {"uri": EXAMPLES + "tone.json"})["result"]


def test_the_address_of_an_example_says_nothing_of_where_its_folder_is(library: Library) -> None:
    assert [example.below for example in library.examples] == ["SynestheticAsset_Example1.json", "tone.json"]


@pytest.mark.usefixtures("library")
def test_what_never_changes_may_be_kept(tmp_path: Path) -> None:
    answer = connected(tmp_path).request("resources/read", params("2026-07-28", uri=SCHEMAS + "tone"))
    assert answer["result"]["ttlMs"] == 60_000
