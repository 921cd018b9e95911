"""What may stand in for an embedded schema, and what may not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portbook.schema import official_schemas as module
from portbook.schema.official_schema_override import MAX_BYTES, BadOverride, check_override
from portbook.schema.official_schemas import NEWEST, REVISIONS, SchemaStore

DRAFT_07 = "2025-06-18"


def official(revision: str) -> bytes:
    return (Path(module.__file__).parent / "official" / f"{revision}.json").read_bytes()


def changed(revision: str, change: Callable[[Any], object]) -> bytes:
    document = json.loads(official(revision))
    change(document)
    return json.dumps(document).encode()


def put(*path: str, value: Any) -> Callable[[Any], object]:
    def change(document: Any) -> None:
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_official_schema_itself_is_accepted(revision: str) -> None:
    data = official(revision)
    digest = hashlib.sha256(data).hexdigest()
    override = check_override(data, revision, digest.upper(), origin="somewhere")
    assert (override.revision, override.origin, override.sha256) == (revision, "somewhere", digest)
    store = SchemaStore(override)
    for name in store.definitions(revision):
        store.definition(revision, name)


@pytest.mark.parametrize(
    "change",
    [
        case("a new definition", put("$defs", "Extra", value={"$ref": "#/$defs/Tool"})),
        case("a stricter one", put("$defs", "Tool", "additionalProperties", value=False)),
        case("a definition that allows anything", put("$defs", "Tool", value=True)),
        case("no dialect", lambda document: document.pop("$schema")),
        case("a title", put("title", value="ours")),
        case(
            "a name to be escaped",
            put("$defs", "a/b~c", value={"$ref": "#/$defs/a~1b~0c/$defs/x", "$defs": {"x": {}}}),
        ),
    ],
)
def test_a_changed_schema_is_accepted(change: Callable[[Any], object]) -> None:
    override = check_override(changed(NEWEST, change), NEWEST, None)
    store = SchemaStore(override)
    for name in store.definitions(NEWEST):
        store.definition(NEWEST, name)


def test_a_revision_may_be_overridden_in_the_other_dialect() -> None:
    text = official(DRAFT_07).decode().replace("#/definitions/", "#/$defs/")
    document = json.loads(text)
    document["$defs"] = document.pop("definitions")
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    store = SchemaStore(check_override(json.dumps(document).encode(), DRAFT_07, None))
    assert store.definition(DRAFT_07, "Tool").is_valid({"name": "a", "inputSchema": {"type": "object"}})


def bomb(key: str) -> Callable[[Any], object]:
    """Sixteen definitions, each of which looks twice at the next: 65,536 evaluations."""

    def change(document: Any) -> None:
        for at in range(16):
            following = {"$ref": f"#/{key}/B{at + 1}"}
            document[key][f"B{at}"] = {"allOf": [following, following]}
        document[key]["B16"] = {}

    return change


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        case("nothing", b"", "it is not JSON: "),
        case("not JSON", b"{", "it is not JSON: the text is incomplete (line 1, column 1)"),
        case("a page", b"<!doctype html>", "it is not JSON: "),
        case("a key twice", b'{"$defs":{},"$defs":{}}', "it is not JSON: an object has the same key twice"),
        case("a byte order mark", b"\xef\xbb\xbf{}", "it is not JSON: "),
        case("a list", b"[]", "it is not a JSON Schema: it must be an object"),
        case("true", b"true", "it is not a JSON Schema: it must be an object"),
        case("no definitions", b"{}", "it is not a JSON Schema of MCP: it has no definitions"),
        case(
            "definitions in a list", b'{"$defs":[]}', "it is not a JSON Schema of MCP: it has no definitions"
        ),
        case(
            "another dialect",
            b'{"$schema":"http://json-schema.org/draft-04/schema#","definitions":{}}',
            "its $schema must be ",
        ),
        case("a dialect that is no string", b'{"$schema":[],"$defs":{}}', "its $schema must be "),
        case("too large", b" " * (MAX_BYTES + 1), "it is larger than 8 MiB"),
        case(
            "another revision",
            official("2025-11-25"),
            f"it lacks definitions that revision {NEWEST} has: CacheableResult, ",
        ),
        case(
            "one definition missing",
            changed(NEWEST, lambda document: document["$defs"].pop("Tool")),
            f"it lacks definitions that revision {NEWEST} has: Tool",
        ),
        case(
            "another document",
            changed(NEWEST, put("$defs", "Tool", value={"$ref": "https://example.org/t"})),
            "/$defs/Tool refers to something outside of $defs; copy it there",
        ),
        case(
            "its own root",
            changed(NEWEST, put("$defs", "Tool", value={"items": {"$ref": "#"}})),
            "/$defs/Tool refers to something outside of $defs; copy it there",
        ),
        case(
            "a dangling reference",
            changed(NEWEST, put("$defs", "Tool", value={"$ref": "#/$defs/Tol"})),
            "it does not compile: /$defs/Tool/$ref: refers to something that is not in this document",
        ),
        case(
            "a wrong keyword",
            changed(NEWEST, put("$defs", "Tool", "type", value="objekt")),
            "it does not compile: /$defs/Tool/type: ",
        ),
        case(
            "a definition that is no schema",
            changed(NEWEST, put("$defs", "Tool", value=5)),
            "it does not compile: /$defs/Tool: ",
        ),
        case(
            "a costly pattern",
            changed(NEWEST, put("$defs", "Tool", "pattern", value="(?=a)b")),
            "it does not compile: /$defs/Tool/pattern: ",
        ),
        case(
            "a circle",
            changed(NEWEST, put("$defs", "Tool", value={"$ref": "#/$defs/Tool"})),
            "it does not compile: ",
        ),
        case("a bomb", changed(NEWEST, bomb("$defs")), "it does not compile: "),
    ],
)
def test_what_cannot_stand_in_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(BadOverride) as raised:
        check_override(data, NEWEST, None)
    assert raised.value.reason.startswith(reason)
    assert str(raised.value) == raised.value.reason
    assert len(raised.value.reason) < 800


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        case("a bomb", bomb("definitions"), "it does not compile: "),
        case(
            "a bomb in a list",
            lambda document: (
                bomb("definitions")(document),
                put(
                    "definitions",
                    "Tool",
                    value={"items": [{"$ref": "#/definitions/B0"}, {"$ref": "#/definitions/B0"}]},
                )(document),
            ),
            "it does not compile: ",
        ),
        case(
            "a dangling one under dependencies",
            put("definitions", "Tool", value={"dependencies": {"a": {"$ref": "#/definitions/Tol"}}}),
            "it does not compile: /definitions/Tool/dependencies/a/$ref: ",
        ),
        case(
            "a dangling one under additionalItems",
            put(
                "definitions", "Tool", value={"items": [{}], "additionalItems": {"$ref": "#/definitions/Tol"}}
            ),
            "it does not compile: /definitions/Tool/additionalItems/$ref: ",
        ),
        case(
            "a dangling one in a list of items",
            put("definitions", "Tool", value={"items": [{"$ref": "#/definitions/Tol"}]}),
            "it does not compile: /definitions/Tool/items/0/$ref: ",
        ),
        case(
            "an anchor of the other dialect",
            put("definitions", "Tool", value={"$id": "#tool", "allOf": [{"$ref": "#tool"}]}),
            "/definitions/Tool refers to something outside of definitions",
        ),
        case(
            "the other dialect inside",
            put("definitions", "Tool", value={"$schema": "https://json-schema.org/draft/2020-12/schema"}),
            "it does not compile: /definitions/Tool/$schema: must be http://json-schema.org/draft-07/schema#",
        ),
        case(
            "a wrong keyword",
            put("definitions", "Tool", "required", value="name"),
            "it does not compile: /definitions/Tool/required: ",
        ),
    ],
)
def test_draft_07_is_examined_as_closely(change: Callable[[Any], object], reason: str) -> None:
    with pytest.raises(BadOverride) as raised:
        check_override(changed(DRAFT_07, change), DRAFT_07, None)
    assert raised.value.reason.startswith(reason)


def test_the_digest_is_checked_before_anything_looks_inside() -> None:
    with pytest.raises(
        BadOverride, match=f"^its sha256 is {hashlib.sha256(b'{').hexdigest()}, not the expected one"
    ):
        check_override(b"{", NEWEST, "0" * 64)
    with pytest.raises(BadOverride, match="not 64 hexadecimal digits"):
        check_override(b"{", NEWEST, "0" * 63)


def test_an_unknown_revision_is_told_the_known_ones() -> None:
    with pytest.raises(
        BadOverride, match=r'^there is no revision "2026"; choose one of 2024-11-05, .*2026-07-28$'
    ):
        check_override(b"{}", "2026", None)
