"""The six schemas of results in envelopes: where they lie, what they allow, and how they go by two names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from portbook import SchemaRegistry
from support.portbook_process import ROOT

SCHEMAS = ROOT / "codex" / "specs" / "schemas"
NAMES = {
    "mcp.envelope.v0.1": "mcp.envelope.schema.v0.1.json",
    "mcp.request.v0.1": "mcp.request.schema.v0.1.json",
    "prov.record.v0.1": "prov.record.schema.v0.1.json",
    "artifact.ref.v0.1": "artifact.ref.schema.v0.1.json",
    "artifact.v0.1": "artifact.schema.v0.1.json",
    "evidence.v0.1": "evidence.schema.v0.1.json",
}
DOCUMENTS: dict[str, Any] = {name: json.loads((SCHEMAS / file).read_text()) for name, file in NAMES.items()}

SHA256 = {"alg": "sha256", "value": "0" * 64}
ARTIFACT = {"schema_version": "artifact.v0.1", "artifact_id": "a", "media_type": "application/json"}
FULL_ARTIFACT = {**ARTIFACT, "locator": "file:a", "size_bytes": 0, "digest": SHA256, "labels": {"role": "x"}}
EVIDENCE = {"field": "x", "source": "artifact:a#json:/x"}
FULL_EVIDENCE = {"schema_version": "evidence.v0.1", **EVIDENCE, "method": "engine.look", "note": ""}
RECORD = {
    "schema_version": "prov.record.v0.1",
    "run_id": "1",
    "tool": {"name": "t", "version": "1"},
    "inputs": [],
    "outputs": [],
    "methods": [],
    "evidence": [],
    "parents": [],
}
FULL_RECORD = {
    **RECORD,
    "tool": {"name": "t", "version": "1", "adapter": "portbook"},
    "time": "2026-03-01T12:00:00Z",
    "inputs": [FULL_ARTIFACT],
    "outputs": [ARTIFACT],
    "methods": ["integrity.digest.sha256", "a-b"],
    "evidence": [FULL_EVIDENCE],
    "parents": ["0"],
    "integrity": {"record_digest": SHA256, "signature": {"alg": "x", "key_id": "y", "value": "z" * 16}},
}
PROBLEM = {
    "code": "C",
    "message": "M",
    "details": {"a": 1, "b": None, "c": "", "d": True},
    "evidence": [EVIDENCE],
}
ENVELOPE = {"schema_version": "mcp.envelope.v0.1", "result": None}
FULL_ENVELOPE = {
    **ENVELOPE,
    "result": {"schema_version": "mine"},
    "provenance": FULL_RECORD,
    "errors": [{**PROBLEM, "retryable": True}],
    "warnings": [PROBLEM],
    "meta": {"adapter": "a", "request_id": "r", "duration_ms": 3, "schema_hints": {"result": "mine"}},
}
REFERENCE = {"artifact_id": "a"}
REQUEST = {"schema_version": "mcp.request.v0.1", "tool": {"name": "t"}, "params": None, "artifacts": []}
FULL_REQUEST = {
    **REQUEST,
    "tool": {"name": "t", "version": "2"},
    "params": {"_meta": {"capture_provenance": True}},
    "artifacts": [
        {"schema_version": "artifact.ref.v0.1", **REFERENCE, "digest": SHA256, "labels": {}},
        {"locator": "file:b", "media_type": "text/plain"},
    ],
    "request_id": "r",
    "preferences": {"deterministic": False, "max_output_bytes": 0, "locale": "de"},
    "time": "2026-03-01T12:00:00+01:00",
}

GOOD: dict[str, list[Any]] = {
    "mcp.envelope.v0.1": [
        ENVELOPE,
        FULL_ENVELOPE,
        {**ENVELOPE, "provenance": None},
        {**ENVELOPE, "errors": []},
    ],
    "mcp.request.v0.1": [REQUEST, FULL_REQUEST, *({**REQUEST, "params": p} for p in ([], "x", 1, True, {}))],
    "prov.record.v0.1": [RECORD, FULL_RECORD, {**RECORD, "integrity": {}}],
    "artifact.ref.v0.1": [REFERENCE, {"locator": "x"}, {**REFERENCE, "locator": "x"}],
    "artifact.v0.1": [
        ARTIFACT,
        FULL_ARTIFACT,
        {**ARTIFACT, "digest": {"alg": "sha512", "value": "a" * 128}},
        {**ARTIFACT, "digest": {"alg": "blake3", "value": "b" * 64}},
    ],
    "evidence.v0.1": [EVIDENCE, FULL_EVIDENCE],
}


def changed(document: Any, pointer: str, value: Any = ...) -> Any:
    """A copy of `document` with the value at `pointer` replaced, or taken out."""
    result = json.loads(json.dumps(document))  # parts that are shared become parts of their own
    *way, last = pointer.split("/")[1:]
    place: Any = result
    for step in way:
        place = place[int(step) if isinstance(place, list) else step]
    if value is ...:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return result


def digest(alg: str, value: str) -> Any:
    return changed(FULL_ARTIFACT, "/digest", {"alg": alg, "value": value})


BAD: dict[str, list[Any]] = {
    "mcp.envelope.v0.1": [
        *(changed(ENVELOPE, f"/{name}") for name in ENVELOPE),
        *({**ENVELOPE, name: 1} for name in ("extra", "provenance", "errors", "warnings", "meta")),
        changed(ENVELOPE, "/schema_version", "mcp.envelope.v0.2"),
        changed(FULL_ENVELOPE, "/provenance", {}),
        changed(FULL_ENVELOPE, "/provenance/inputs/0/digest/value", "A" * 64),
        changed(FULL_ENVELOPE, "/provenance/evidence/0/source"),
        *(changed(FULL_ENVELOPE, f"/errors/0/{name}") for name in ("code", "message")),
        *(changed(FULL_ENVELOPE, f"/warnings/0/{name}") for name in ("code", "message")),
        *(changed(FULL_ENVELOPE, "/errors/0/code", wrong) for wrong in ("", "x" * 201, 5)),
        *(changed(FULL_ENVELOPE, "/errors/0/message", wrong) for wrong in ("", "x" * 2001)),
        *(changed(FULL_ENVELOPE, "/errors/0/details", wrong) for wrong in ({"a": []}, {"a": {}}, [])),
        changed(FULL_ENVELOPE, "/errors/0/retryable", "yes"),
        changed(FULL_ENVELOPE, "/errors/0/more", 1),
        changed(FULL_ENVELOPE, "/errors/0/evidence/0", {}),
        changed(FULL_ENVELOPE, "/warnings/0/retryable", True),
        changed(FULL_ENVELOPE, "/meta/more", 1),
        changed(FULL_ENVELOPE, "/meta/duration_ms", 1.5),
        changed(FULL_ENVELOPE, "/meta/duration_ms", -1),
        changed(FULL_ENVELOPE, "/meta/schema_hints", {"a": 1}),
        [],
        None,
    ],
    "mcp.request.v0.1": [
        *(changed(REQUEST, f"/{name}") for name in REQUEST),
        {**REQUEST, "extra": 1},
        changed(FULL_REQUEST, "/tool/name"),
        changed(FULL_REQUEST, "/tool/name", ""),
        changed(FULL_REQUEST, "/tool/more", 1),
        changed(FULL_REQUEST, "/artifacts/0", {"media_type": "x"}),
        changed(FULL_REQUEST, "/artifacts/0/digest/alg", "md5"),
        changed(FULL_REQUEST, "/preferences/deterministic", "true"),
        changed(FULL_REQUEST, "/preferences/max_output_bytes", -1),
        changed(FULL_REQUEST, "/preferences/more", 1),
        changed(FULL_REQUEST, "/time", "yesterday"),
        changed(FULL_REQUEST, "/request_id", 5),
    ],
    "prov.record.v0.1": [
        *(changed(RECORD, f"/{name}") for name in RECORD),
        {**RECORD, "extra": 1},
        changed(FULL_RECORD, "/tool/version"),
        changed(FULL_RECORD, "/tool/more", 1),
        changed(FULL_RECORD, "/run_id", ""),
        changed(FULL_RECORD, "/time", "2026-03-01"),
        changed(FULL_RECORD, "/methods/0", "Upper.Case"),
        changed(FULL_RECORD, "/methods/0", ""),
        changed(FULL_RECORD, "/parents/0", 5),
        changed(FULL_RECORD, "/inputs/0/artifact_id"),
        changed(FULL_RECORD, "/evidence/0/field"),
        changed(FULL_RECORD, "/integrity/more", 1),
        changed(FULL_RECORD, "/integrity/record_digest/value", "0" * 63),
        changed(FULL_RECORD, "/integrity/signature/key_id"),
        changed(FULL_RECORD, "/integrity/signature/more", 1),
    ],
    "artifact.ref.v0.1": [{}, {"media_type": "x"}, {**REFERENCE, "extra": 1}, {"artifact_id": ""}],
    "artifact.v0.1": [
        *(changed(ARTIFACT, f"/{name}") for name in ARTIFACT),
        {**ARTIFACT, "extra": 1},
        changed(FULL_ARTIFACT, "/size_bytes", -1),
        changed(FULL_ARTIFACT, "/labels", {"a": 1}),
        changed(FULL_ARTIFACT, "/digest/value"),
        changed(FULL_ARTIFACT, "/digest/alg"),
        changed(FULL_ARTIFACT, "/digest/more", 1),
        digest("md5", "0" * 32),
        *(digest("sha256", wrong) for wrong in ("", "0" * 63, "0" * 65, "0" * 128, "A" * 64, "g" * 64)),
        *(digest("sha512", wrong) for wrong in ("0" * 64, "0" * 127, "0" * 129, "F" * 128)),
        *(digest("blake3", wrong) for wrong in ("0" * 63, "0" * 128, "F" * 64)),
    ],
    "evidence.v0.1": [
        {"field": "x"},
        {"source": "artifact:a"},
        {**EVIDENCE, "field": ""},
        {**EVIDENCE, "extra": 1},
        {**EVIDENCE, "note": "x" * 401},
        {**EVIDENCE, "schema_version": "evidence.v0.2"},
    ],
}


@pytest.mark.covers("003.references")
def test_the_schemas_that_the_specification_names_lie_beside_the_others() -> None:
    for name, document in DOCUMENTS.items():
        assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert document["$id"] == name


@pytest.mark.parametrize(("identifier", "file"), NAMES.items())
def test_a_schema_goes_by_its_id_and_by_its_file_name(identifier: str, file: str) -> None:
    registry = SchemaRegistry()
    assert registry.load(identifier) is registry.load(file) is SchemaRegistry().load(identifier)


def test_a_name_that_no_schema_has_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        SchemaRegistry().load("mcp.envelope.v0.2")


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_accepts_and_refuses(name: str) -> None:
    validator = SchemaRegistry().load(name)
    assert [document for document in GOOD[name] if not validator.is_valid(document)] == []
    assert [document for document in BAD[name] if validator.is_valid(document)] == []


@pytest.mark.parametrize("by", ["id", "file"])
@pytest.mark.parametrize("name", NAMES)
def test_another_validator_says_the_same(name: str, by: str) -> None:
    resources = [
        (key if by == "id" else file, Resource.from_contents(DOCUMENTS[key])) for key, file in NAMES.items()
    ]
    resources += [(key, Resource.from_contents(DOCUMENTS[key])) for key in NAMES]
    registry: Any = Registry().with_resources(resources)
    reference = {"$ref": name if by == "id" else NAMES[name]}
    other = Draft202012Validator(
        reference, registry=registry, format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    without_dates = [
        document
        for document in BAD[name]
        if not (isinstance(document, dict) and document.get("time") in ("yesterday", "2026-03-01"))
    ]  # the other one needs a package more to know a date
    assert [document for document in GOOD[name] if not other.is_valid(document)] == []
    assert [document for document in without_dates if other.is_valid(document)] == []


def objects(schema: Any) -> Any:
    """Every subschema that says it is of an object."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from objects(item)


@pytest.mark.parametrize("name", NAMES)
def test_every_object_is_closed(name: str) -> None:
    found = list(objects(DOCUMENTS[name]))
    assert found
    assert [schema for schema in found if schema.get("additionalProperties") is not False] == []


def test_a_violation_deep_inside_is_told_with_its_place() -> None:
    broken = changed(FULL_ENVELOPE, "/provenance/inputs/0/digest/value", "0" * 63)
    [finding] = SchemaRegistry().load("mcp.envelope.v0.1").findings(broken)
    assert (finding.pointer, finding.message) == (
        "/provenance/inputs/0/digest/value",
        "shorter than 64 characters",
    )
