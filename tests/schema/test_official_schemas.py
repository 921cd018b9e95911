"""The official schemas as the store hands them out."""

from __future__ import annotations

import json
import shutil
import threading
from binascii import crc32
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from portbook.schema import official_schemas as module
from portbook.schema.official_schema_digests import PINS
from portbook.schema.official_schemas import (
    NEWEST,
    OVERLAYS,
    REVISIONS,
    BrokenSchema,
    Override,
    SchemaStore,
    closure,
    key_of,
)

STORE = SchemaStore()

CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def raw(revision: str) -> Any:
    return json.loads((Path(module.__file__).parent / "official" / f"{revision}.json").read_bytes())


def call(revision: str, **params: Any) -> dict[str, Any]:
    meta = {"_meta": META} if revision == NEWEST else {}
    return {**CALL, "params": {**CALL["params"], **meta, **params}}


def test_there_are_five_revisions_oldest_first() -> None:
    assert REVISIONS == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
    assert NEWEST == "2026-07-28"


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_document_is_the_official_one_but_for_its_overlays(revision: str) -> None:
    expected = raw(revision)
    for overlay in OVERLAYS.get(revision, ()):
        place = expected
        for step in overlay.path[:-1]:
            place = place[step]
        assert place[overlay.path[-1]] == overlay.official
        place[overlay.path[-1]] = overlay.ours
    assert STORE.document(revision) == expected
    assert STORE.document(revision) is STORE.document(revision)
    assert (STORE.origin(revision), STORE.is_overridden(revision)) == ("embedded", False)
    assert STORE.sha256(revision) == PINS[revision].sha256


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_definition_compiles(revision: str) -> None:
    assert len(STORE.definitions(revision)) >= 79
    for name in STORE.definitions(revision):
        assert STORE.definition(revision, name) is STORE.definition(revision, name)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_closure_has_all_that_its_definition_leads_to_and_no_more(revision: str) -> None:
    document = STORE.document(revision)
    key = key_of(document)
    made = closure(document, "CallToolRequest")
    assert made["$ref"] == f"#/{key}/CallToolRequest"
    text = json.dumps(made)
    held: Any = made[key]
    assert all(f'"#/{key}/{name}"' in text for name in held)
    assert {part.split('"')[0] for part in text.split(f'"#/{key}/')[1:]} == set(held)
    assert len(held) < len(STORE.definitions(revision)) / 2
    assert all(held[name] is document[key][name] for name in held)  # type: ignore[index,call-overload]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_call_is_allowed_and_its_flaws_are_found_at_their_place_in_the_official_document(
    revision: str,
) -> None:
    validator = STORE.definition(revision, "CallToolRequest")
    assert validator.is_valid(call(revision))
    [finding] = validator.findings(call(revision, name=5))
    assert (finding.pointer, finding.message, finding.keyword) == ("/params/name", "expected string", "type")
    place: Any = STORE.document(revision)
    for step in finding.schema_pointer.split("/")[1:]:
        place = place[step]
    assert place == "string"


def test_a_pointer_into_the_schema_names_the_definition() -> None:
    [finding] = STORE.definition(NEWEST, "CallToolRequest").findings(call(NEWEST, name=5))
    assert finding.schema_pointer == "/$defs/CallToolRequestParams/properties/name/type"
    [finding] = STORE.definition("2025-06-18", "CallToolRequest").findings(call("2025-06-18", name=5))
    assert finding.schema_pointer == "/definitions/CallToolRequest/properties/params/properties/name/type"


@pytest.mark.parametrize("revision", REVISIONS)
def test_formats_are_asserted_in_every_revision(revision: str) -> None:
    resource = STORE.definition(revision, "Resource")
    assert resource.is_valid({"name": "a", "uri": "file:///a"})
    [finding] = resource.findings({"name": "a", "uri": "not an address"})
    assert (finding.pointer, finding.message) == ("/uri", "is not a valid uri")


@pytest.mark.parametrize(
    "value", [1.5, None, True, 1, "x", [], {}, [1.5, None], {"a": {"b": [None, 0.1]}}], ids=repr
)
def test_the_newest_revision_takes_every_json_value_for_one(value: Any) -> None:
    validator = STORE.definition(NEWEST, "JSONValue")
    assert validator.is_valid(value)
    assert STORE.definition(NEWEST, "CallToolRequest").is_valid(call(NEWEST, arguments={"a": value}))


def test_without_the_overlay_the_official_schema_refuses_floats_and_null() -> None:
    official = SchemaStore(Override(NEWEST, raw(NEWEST), "unchanged"))
    assert not official.definition(NEWEST, "JSONValue").is_valid(1.5)
    assert not official.definition(NEWEST, "JSONValue").is_valid(None)
    assert official.definition(NEWEST, "JSONValue").is_valid(1)


@pytest.mark.parametrize(
    ("revision", "name"), [(NEWEST, "InitializeRequest"), ("2024-11-05", "Task"), (NEWEST, "")]
)
def test_an_unknown_definition_is_a_key_error(revision: str, name: str) -> None:
    with pytest.raises(KeyError):
        STORE.definition(revision, name)


@pytest.mark.parametrize("revision", ["2024-11-06", "", "../2024-11-05", "DRAFT-2026"])
def test_an_unknown_revision_is_a_key_error(revision: str) -> None:
    for ask in (STORE.document, STORE.definitions, STORE.sha256):
        with pytest.raises(KeyError):
            ask(revision)
    with pytest.raises(KeyError):
        STORE.definition(revision, "CallToolRequest")


def test_an_override_stands_in_for_its_own_revision_only() -> None:
    document: Any = raw("2025-06-18")
    document["definitions"]["Resource"]["properties"]["uri"] = {"type": "integer"}
    store = SchemaStore(Override("2025-06-18", document, "https://example.org/schema.json", "ab"))
    assert store.definition("2025-06-18", "Resource").is_valid({"name": "a", "uri": 5})
    assert not store.definition("2025-03-26", "Resource").is_valid({"name": "a", "uri": 5})
    assert [revision for revision in REVISIONS if store.is_overridden(revision)] == ["2025-06-18"]
    assert store.origin("2025-06-18") == "https://example.org/schema.json"
    assert store.sha256("2025-06-18") == "ab"
    assert store.origin("2025-03-26") == "embedded"


def test_an_override_is_examined_before_it_is_compiled() -> None:
    store = SchemaStore(Override(NEWEST, {"$defs": {"A": {"$ref": "https://example.org/b"}}}, "x"))
    with pytest.raises(BrokenSchema, match="which is never fetched"):
        store.definition(NEWEST, "A")


@pytest.mark.parametrize("damage", ["changed", "cut", "missing"])
def test_a_damaged_embedded_schema_is_never_used(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for revision in REVISIONS:
        (tmp_path / f"{revision}.json").write_text(json.dumps(raw(revision)))
    path = tmp_path / "2025-03-26.json"
    original = (Path(module.__file__).parent / "official/2025-03-26.json").read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(
            original.replace(b"tools/call", b"tools/cull") if damage == "changed" else original[:-1]
        )
    monkeypatch.setattr(module, "_OFFICIAL", tmp_path)
    with pytest.raises(BrokenSchema, match=rf"^{path}: the embedded schema .*; install Portbook again$"):
        SchemaStore().definition("2025-03-26", "CallToolRequest")
    with pytest.raises(BrokenSchema, match="install Portbook again"):
        SchemaStore().verify()


def test_a_schema_that_was_changed_with_its_checksum_kept_is_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for revision in REVISIONS:
        shutil.copy(Path(module.__file__).parent / f"official/{revision}.json", tmp_path)
    pin = module.PINS["2025-03-26"]
    forged = (tmp_path / "2025-03-26.json").read_bytes().replace(b"tools/call", b"tools/cull")
    (tmp_path / "2025-03-26.json").write_bytes(forged)
    monkeypatch.setattr(module, "_OFFICIAL", tmp_path)
    monkeypatch.setitem(module.PINS, "2025-03-26", pin._replace(crc32=crc32(forged)))
    SchemaStore().verify()
    with pytest.raises(BrokenSchema, match="differs from its pin; install Portbook again"):
        SchemaStore().definition("2025-03-26", "CallToolRequest")


def test_the_embedded_schemas_are_whole() -> None:
    SchemaStore().verify()
    for revision in REVISIONS:
        SchemaStore().document(revision)


def test_threads_share_one_validator() -> None:
    store = SchemaStore()
    found: list[object] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        found.append(store.definition(NEWEST, "ServerResult"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(validator) for validator in found}) == 1


SAMPLES: list[Any] = [
    {}, [], None, 1, "x", CALL, call(NEWEST), {"name": "a", "uri": "file:///a"}, {"content": []},
    {"content": [{"type": "text", "text": "a"}]}, {"content": [{"type": "text"}]}, {"tools": []},
    {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}, {"code": 1, "message": "m"},
    {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "error": {"code": 1, "message": "m"}},
    {"method": "ping"}, {"method": "notifications/initialized", "jsonrpc": "2.0"}, {"resultType": "complete"},
]  # fmt: skip


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_definition_agrees_with_another_validator(revision: str) -> None:
    document: Any = STORE.document(revision)
    dialect = jsonschema.Draft202012Validator if "$defs" in document else jsonschema.Draft7Validator
    differing: list[tuple[str, Any]] = []
    for name in STORE.definitions(revision):
        oracle = dialect({**document, "$ref": f"#/{key_of(document)}/{name}"})
        ours = STORE.definition(revision, name)
        differing += [
            (name, sample) for sample in SAMPLES if ours.is_valid(sample) != oracle.is_valid(sample)
        ]
    assert differing == []
