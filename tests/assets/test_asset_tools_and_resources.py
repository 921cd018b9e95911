"""The asset tools: results as the contract has them, and schemas that allow them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.assets.asset_tools_and_resources import asset_tools
from portbook.assets.library import EMPTY, Library
from portbook.assets.populate_backend import backend_at
from portbook.errors import Reason, Refused
from portbook.schema.engine import validator_for
from support.asset_samples import ASSET, TONE, Write
from support.in_process_connection import EVERY_REVISION, Connection, params


def call(library: Library, tool: str, backend: Any = None, **given: Any) -> Any:
    """Call a tool as the pipeline does: its schemas allow what goes in and what comes out."""
    [spec] = [spec for spec in asset_tools(library, backend, 100) if spec.name == tool]
    assert validator_for(spec.input_schema).findings(given) == ()
    assert spec.function is not None
    result: Any = spec.function(given)
    assert validator_for(spec.output_schema).findings(result) == ()
    return result


@pytest.mark.covers("004.io.list-schemas")
def test_schemas_are_listed_with_name_version_and_path(library: Library, tmp_path: Path) -> None:
    assert call(library, "list_schemas") == {
        "ok": True,
        "schemas": [
            {
                "name": "synesthetic-asset",
                "version": "0.7.0",
                "path": f"{tmp_path}/schemas/synesthetic-asset.schema.json",
            },
            {"name": "tone", "version": "0.2.1", "path": f"{tmp_path}/schemas/tone.schema.json"},
        ],
    }
    assert call(EMPTY, "list_schemas") == {"ok": True, "schemas": []}


@pytest.mark.covers("004.io.get-schema")
def test_a_schema_is_got_by_name_or_not_found(library: Library) -> None:
    assert call(library, "get_schema", name="synesthetic-asset") == {
        "ok": True,
        "schema": ASSET,
        "version": "0.7.0",
    }
    assert call(library, "get_schema", name="../tone") == {"ok": False, "reason": "not_found"}
    assert call(EMPTY, "get_schema", name="tone") == {"ok": False, "reason": "not_found"}


@pytest.mark.covers("004.io.list-examples")
@pytest.mark.parametrize("every", [{}, {"component": "all"}, {"component": "*"}, {"component": None}])
def test_examples_are_listed_for_one_component_or_for_all(
    every: dict[str, Any], library: Library, tmp_path: Path
) -> None:
    tone = {"component": "tone", "path": f"{tmp_path}/examples/tone.json"}
    first = "SynestheticAsset_Example1"
    assert call(library, "list_examples", **every) == {
        "ok": True,
        "examples": [{"component": first, "path": f"{tmp_path}/examples/{first}.json"}, tone],
    }
    assert call(library, "list_examples", component="tone") == {"ok": True, "examples": [tone]}
    assert call(library, "list_examples", component="none") == {"ok": True, "examples": []}


@pytest.mark.covers("004.io.get-example")
def test_an_example_says_its_schema_and_whether_that_allows_it(library: Library, tmp_path: Path) -> None:
    assert call(library, "get_example", path=f"{tmp_path}/examples/tone.json") == {
        "ok": True,
        "example": {"pitch": "high"},
        "schema": "tone",
        "validated": False,
    }
    assert call(library, "get_example", path="SynestheticAsset_Example1.json") == {
        "ok": True,
        "example": {"$schemaRef": "x/synesthetic-asset.schema.json", "name": "a"},
        "schema": "synesthetic-asset",
        "validated": True,
    }
    assert call(library, "get_example", path="/etc/passwd") == {"ok": False, "reason": "not_found"}


@pytest.mark.covers("004.examples.nested")
def test_examples_of_assets_validate_as_nested_assets(library: Library) -> None:
    got = call(library, "get_example", path="SynestheticAsset_Example1.json")
    asset = got["example"]
    assert call(library, "validate_asset", asset=asset, schema="nested-synesthetic-asset") == {
        "ok": True,
        "errors": [],
    }


@pytest.mark.covers("004.io.diff-assets")
def test_a_diff_is_a_patch(library: Library) -> None:
    assert call(library, "diff_assets", base={"a": 1}, new={"b": None}) == {
        "ok": True,
        "patch": [{"op": "remove", "path": "/a"}, {"op": "add", "path": "/b", "value": None}],
    }


@pytest.mark.covers("004.backend.enabled-by-url")
def test_without_a_backend_populating_is_unsupported(library: Library) -> None:
    with pytest.raises(Refused) as caught:
        call(library, "populate_backend", asset={"name": "a"})
    assert caught.value.reason is Reason.BACKEND_DISABLED


@pytest.mark.parametrize(
    ("asked", "is_sent"), [({}, False), ({"validate_first": True}, False), ({"validate_first": False}, True)]
)
def test_an_asset_is_validated_first_unless_told_otherwise(
    asked: dict[str, Any], is_sent: bool, library: Library
) -> None:
    specs = asset_tools(library, backend_at("http://host", "/assets"), 100)
    [operation] = [spec.operation for spec in specs if spec.operation is not None]
    assert operation.write is not None
    if is_sent:
        assert operation.write({"asset": {}, **asked}) == b"{}"
        return
    with pytest.raises(Refused) as caught:
        operation.write({"asset": {}, **asked})
    assert caught.value.reason is Reason.BAD_ASSET


# Schemas and examples as MCP resources: listed, read, judged and recorded as every resource is.


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
