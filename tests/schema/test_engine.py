"""Compiled validators: the right verdict, findings as data, nothing fetched, quoted, or waited for."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from portbook.errors import Finding
from portbook.schema import engine
from portbook.schema.engine import (
    BadSchema,
    SchemaViolation,
    compile_schema,
    is_usable_pattern,
    validator_for,
)
from portbook.schema.json_schema_drafts import DIALECT
from support.counts import count
from support.random_schemas import LEAVES, SCHEMAS, VALUES, values

CORPORA = Path(__file__).resolve().parents[1] / "corpora"

# Not an assertion about speed: what takes exponential time never comes back, and would hang the suite.
comes_back = pytest.mark.timeout(20)


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def refusal(schema: Any) -> tuple[Finding, ...]:
    with pytest.raises(BadSchema) as raised:
        validator_for(schema)
    assert raised.value.findings
    return raised.value.findings


ASSERTED = [
    case("an id with a space", {"$id": "a b"}),
    case("a reference with a space", {"$ref": "a b"}),
    case("a reference within, with a space", {"$ref": "#/$defs/a b", "$defs": {"a b": {}}}),
    case("a dynamic reference with a space", {"$dynamicRef": "a b"}),
    case("a recursive reference of an older draft, with a space", {"$recursiveRef": "a b % zz"}),
    case("another dialect among dependencies", {"dependencies": {"a": {"$schema": "not a uri %%"}}}),
    case("a vocabulary with a space", {"$vocabulary": {"a b": True}}),
    case("a pattern that is none", {"pattern": "("}),
    case("a pattern of names that is none", {"patternProperties": {"(": {}}}),
]


@pytest.mark.parametrize("schema", ASSERTED)
@pytest.mark.parametrize("around", [{}, {"properties": {"a": {}}}], ids=["alone", "within"])
def test_formats_of_a_schemas_own_values_are_asserted(schema: Any, around: Any) -> None:
    # Most schemas are compared with a meta-schema that does not assert them: these must not be.
    given = {"properties": {"a": schema}} if around else schema
    asserting = jsonschema_rs.Draft202012Validator({"$ref": DIALECT}, offline=True, validate_formats=True)
    assert not asserting.is_valid(given)
    assert refusal(given) == tuple(sorted(engine._finding(error) for error in asserting.iter_errors(given)))  # pyright: ignore[reportPrivateUsage]


@given(SCHEMAS | VALUES)
def test_a_schema_matches_plainly_only_where_it_matches_its_meta_schema(schema: Any) -> None:
    asserting = jsonschema_rs.Draft202012Validator({"$ref": DIALECT}, offline=True, validate_formats=True)
    if engine._matches_plainly(schema, DIALECT):  # pyright: ignore[reportPrivateUsage]
        assert asserting.is_valid(schema)


# ------------------------------------------------------------------------------------------------ findings

PERSON = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "a/b~c": {"type": "null"},
    },
    "additionalProperties": False,
    "$defs": {"tag": {"enum": ["x", "y"]}},
}


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        case("nothing", {"name": "a", "tags": ["x"]}, []),
        case("another type", 5, [("", "expected object", "type", "/type")]),
        case("something missing", {}, [("", 'missing property "name"', "required", "/required")]),
        case(
            "something too many",
            {"name": "a", "b": 1},
            [("", 'unexpected property "b"', "additionalProperties", "/additionalProperties")],
        ),
        case(
            "further down",
            {"name": ""},
            [("/name", "shorter than 1 character", "minLength", "/properties/name/minLength")],
        ),
        case(
            "behind a reference",
            {"name": "a", "tags": ["x", "z"]},
            [("/tags/1", 'must be one of "x", "y"', "enum", "/$defs/tag/enum")],
        ),
        case(
            "a name to be escaped",
            {"name": "a", "a/b~c": 1},
            [("/a~1b~0c", "expected null", "type", "/properties/a~1b~0c/type")],
        ),
        case(
            "several, in the order of their pointers",
            {"tags": [1, "x", 2], "name": 5, "b": 1},
            [
                ("", 'unexpected property "b"', "additionalProperties", "/additionalProperties"),
                ("/name", "expected string", "type", "/properties/name/type"),
                ("/tags/0", 'must be one of "x", "y"', "enum", "/$defs/tag/enum"),
                ("/tags/2", 'must be one of "x", "y"', "enum", "/$defs/tag/enum"),
            ],
        ),
    ],
)
def test_findings_say_where_what_and_by_which_rule(
    instance: Any, expected: list[tuple[str, str, str, str]]
) -> None:
    validator = validator_for(PERSON)
    assert validator.findings(instance) == tuple(Finding(*row) for row in expected)
    assert validator.is_valid(instance) is not bool(expected)


def test_findings_at_one_place_are_ordered_by_message() -> None:
    schema = {"minLength": 5, "pattern": "^b", "enum": ["c"], "format": "date"}
    messages = [finding.message for finding in validator_for(schema).findings("a")]
    assert messages == [
        "does not match the pattern \"^b\"",
        "is not a valid date",
        'must be one of "c"',
        "shorter than 5 characters",
    ]  # fmt: skip


def test_the_same_finding_by_two_ways_is_told_once() -> None:
    schema = {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "string"}}}
    assert len(validator_for(schema).findings(5)) == 1


def test_validate_returns_or_raises_the_findings() -> None:
    validator = validator_for(PERSON)
    validator.validate({"name": "a"})
    with pytest.raises(SchemaViolation) as raised:
        validator.validate({"name": 5, "b": 1})
    assert raised.value.findings == validator.findings({"name": 5, "b": 1})
    assert str(raised.value) == '(root): unexpected property "b"; /name: expected string'
    assert isinstance(raised.value, ValueError)


# ------------------------------------------------------------------------------------------------ numbers


@pytest.mark.parametrize(
    ("schema", "instance", "is_valid"),
    [
        case("1.0 is an integer", {"type": "integer"}, 1.0, True),
        case("1e300 is an integer", {"type": "integer"}, 1e300, True),
        case("1.5 is none", {"type": "integer"}, 1.5, False),
        case("true is none", {"type": "integer"}, True, False),
        case("true is no number", {"type": "number"}, True, False),
        case("1 is no boolean", {"type": "boolean"}, 1, False),
        case("2^200 is an integer", {"type": "integer"}, 2**200, True),
        case("2^53 + 1 is above 2^53", {"maximum": 2**53}, 2**53 + 1, False),
        case("2^64 + 1 is above 2^64", {"maximum": 2**64}, 2**64 + 1, False),
        case("2^64 is not above itself", {"maximum": 2**64}, 2**64, True),
        case("19.99 is a multiple of 0.01", {"multipleOf": 0.01}, 19.99, True),
        case("1.0 is 1 in an enum", {"enum": [1]}, 1.0, True),
        case("true is not 1 in an enum", {"enum": [1]}, True, False),
        case("false is not 0 as a const", {"const": 0}, False, False),
        case("true is not 1 deep inside", {"const": {"a": [1]}}, {"a": [True]}, False),
        case("1 and 1.0 are the same item", {"uniqueItems": True}, [1, 1.0], False),
        case("1 and true are not", {"uniqueItems": True}, [1, True], True),
        case("length is in characters", {"maxLength": 1}, "\N{GRINNING FACE}", True),
    ],
)
def test_numbers_and_booleans_are_what_json_schema_says(schema: Any, instance: Any, is_valid: bool) -> None:
    assert validator_for(schema).is_valid(instance) is is_valid


# ------------------------------------------------------------------------------------------------ formats


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("date-time", "2026-02-28T12:00:00Z", "2026-02-30T12:00:00Z"),
        ("date", "2026-02-28", "2026-13-01"),
        ("time", "12:00:00Z", "25:00:00Z"),
        ("duration", "P1DT2H", "1 day"),
        ("email", "a@example.com", "a"),
        ("hostname", "example.com", "-a"),
        ("ipv4", "127.0.0.1", "256.0.0.1"),
        ("ipv6", "::1", ":::"),
        ("uri", "https://example.com/a", "not a uri"),
        ("uri-reference", "../a", "\\\\"),
        ("uuid", str(uuid.UUID(int=1)), "1"),
        ("regex", "^a+$", "("),
        ("json-pointer", "/a~1b", "a"),
    ],
)
def test_formats_are_asserted(format: str, good: str, bad: str) -> None:
    validator = validator_for({"format": format})
    assert validator.is_valid(good)
    (finding,) = validator.findings(bad)
    assert (finding.message, finding.keyword) == (f"is not a valid {format}", "format")
    assert validator.is_valid(5)


def test_a_format_that_nobody_knows_says_nothing() -> None:
    assert validator_for({"format": "binary"}).is_valid("x")


# -------------------------------------------------------------------------------------- what is no schema


@pytest.mark.parametrize(
    ("schema", "pointer", "message"),
    [
        case("a type that is none", {"type": "banana"}, "/type", 'must be one of "array", "boolean"'),
        case("deep inside", {"properties": {"a": {"items": {"type": 5}}}}, "/properties/a/items/type", ""),
        case("a negative length", {"minLength": -1}, "/minLength", "below the minimum 0"),
        case("an object as a list", {"required": {}}, "/required", "expected array"),
        case("an empty union", {"anyOf": []}, "/anyOf", "has fewer than 1 item"),
        case("a number", 5, "", "expected boolean or object"),
        case("null", None, "", "expected boolean or object"),
        case("a list", [], "", "expected boolean or object"),
        case("a broken pattern", {"pattern": "("}, "/pattern", "is not a valid regex"),
    ],
)  # fmt: skip
def test_a_schema_that_its_meta_schema_does_not_allow_is_refused(
    schema: Any, pointer: str, message: str
) -> None:
    (finding,) = refusal(schema)
    assert finding.pointer == pointer
    assert finding.message.startswith(message)


@pytest.mark.parametrize(
    "named",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2020-12/schema/",
        "http://127.0.0.1:9/meta",
        "",
        5,
        None,
        [],
    ],
)
def test_another_dialect_is_refused(named: Any) -> None:
    [found] = refusal({"$schema": named, "type": "string"})
    assert (found.pointer, found.keyword) == ("/$schema", "$schema")
    assert found.message.startswith(f"must be {DIALECT}, the only supported dialect")


def test_a_schema_of_an_older_draft_is_refused_with_what_to_rename() -> None:
    [found] = refusal({"$schema": "http://json-schema.org/draft-07/schema#"})
    assert "; rename definitions to $defs" in found.message


@pytest.mark.parametrize("named", [DIALECT, DIALECT + "#"])
def test_our_dialect_may_be_named(named: str) -> None:
    assert not validator_for({"$schema": named, "type": "string"}).is_valid(5)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        case("lookahead", {"pattern": "(?=a)a"}, "/pattern"),
        case("lookbehind", {"properties": {"a": {"pattern": "(?<!b)a"}}}, "/properties/a/pattern"),
        case("a back-reference", {"pattern": r"(a)\1"}, "/pattern"),
        case("as a property's name", {"patternProperties": {"(?=a)a": True}}, "/patternProperties/(?=a)a"),
        case("too many repetitions", {"pattern": "(?:a?){30000}"}, "/pattern"),
    ],
)
def test_a_pattern_that_cannot_be_matched_in_linear_time_is_refused(schema: Any, pointer: str) -> None:
    (finding,) = refusal(schema)
    assert (finding.pointer, finding.keyword) == (pointer, "pattern")
    assert finding.message.startswith("not a pattern that can be matched in linear time; ")


def test_findings_about_a_schema_are_ordered_too() -> None:
    found = refusal({"type": "banana", "minLength": -1, "required": {}})
    assert [finding.pointer for finding in found] == ["/minLength", "/required", "/type"]


# --------------------------------------------------------------------------------------- nothing is fetched


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A server that nobody may talk to. The library is not Python: only a real one notices what it does."""

    def loudly(*_: object, **__: object) -> None:
        raise AssertionError("something reached for the network")

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        monkeypatch.setattr(socket.socket, "connect", loudly)
        monkeypatch.setattr(socket, "getaddrinfo", loudly)
        yield server


@pytest.mark.parametrize(
    "schema",
    [
        case("a reference", {"$ref": "http://{}/s.json"}),
        case("below the root", {"properties": {"a": {"items": {"$ref": "http://{}/s.json#/a"}}}}),
        case("in a part nobody uses", {"$defs": {"a": {"$ref": "http://{}/s.json"}}}),
        case("relative to an address", {"$id": "http://{}/", "$ref": "s.json"}),
        case("a dynamic reference", {"$dynamicRef": "http://{}/s.json#a"}),
        case("a dialect", {"$schema": "http://{}/meta"}),
        case("a dialect of a part", {"$defs": {"a": {"$id": "http://{}/a", "$schema": "http://{}/meta"}}}),
        case("below dependencies", {"dependencies": {"a": {"$ref": "http://{}/s.json"}}}),
        case("below an unknown keyword", {"$ref": "#/x/a", "x": {"a": {"$ref": "http://{}/s.json"}}}),
    ],
)
def test_a_schema_elsewhere_is_refused_and_never_asked_for(schema: Any, listener: socket.socket) -> None:
    host, port = listener.getsockname()
    refusal(json.loads(json.dumps(schema).replace("{}", f"{host}:{port}")))
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_even_a_reference_that_slipped_through_the_examination_is_not_fetched(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, port = listener.getsockname()
    monkeypatch.setattr("portbook.schema.evaluation_cost.examine", lambda *_: [])
    with pytest.raises(BadSchema):
        compile_schema({"$ref": f"http://{host}:{port}/s.json"}, "")
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_an_address_of_its_own_is_a_name_and_never_asked_for(listener: socket.socket) -> None:
    host, port = listener.getsockname()
    schema = {
        "$id": f"http://{host}:{port}/s.json",
        "$vocabulary": {f"http://{host}:{port}/v": True},
        "minimum": 1,
    }
    assert not validator_for(schema).is_valid(0)
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("address", ["{path}", "file://{path}", "file:{path}", "../../../../../../..{path}"])
def test_a_schema_in_a_file_is_refused_even_if_it_is_there(address: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text("true")
    refusal({"$ref": address.format(path=path)})


# ------------------------------------------------------------------------------------ what JSON cannot hold


NOT_JSON = [
    case("an object", object()),
    case("NaN", float("nan")),
    case("infinity", float("inf")),
    case("a lone surrogate", "\ud800"),
    case("a key that is half a character", {"\ud800": 1}),
    case("a key that is no string", {1: 1}),
    case("a set", {1}),
    case("bytes", b"x"),
    case("more digits than Python writes", 10**5000),
]


@pytest.mark.parametrize("value", NOT_JSON)
@pytest.mark.parametrize(
    "schema", [True, {"type": ["number", "string", "object"]}, {"minimum": 0}, False], ids=str
)
@pytest.mark.parametrize("where", ["itself", "in a list", "in an object", "beside what is checked"])
def test_what_json_cannot_hold_is_not_allowed_and_raises_nothing(value: Any, schema: Any, where: str) -> None:
    validator = validator_for({"properties": {"a": schema}} if where == "beside what is checked" else schema)
    payload = {
        "itself": value,
        "in a list": [1, [value]],
        "in an object": {"a": {"b": value}},
        "beside what is checked": {"a": 1, "b": value},
    }[where]
    assert validator.is_valid(payload) is False
    (finding,) = validator.findings(payload)
    assert (finding.pointer, finding.keyword) == ("", "json")
    with pytest.raises(SchemaViolation):
        validator.validate(payload)


@pytest.mark.soak("large documents")
def test_nesting_that_would_exhaust_the_stack_is_not_allowed_either() -> None:
    payload: list[Any] = []
    for _ in range(count("large documents")):
        payload = [payload]
    validator = validator_for({"items": {"$ref": "#"}})
    assert validator.is_valid(payload) is False
    assert [finding.keyword for finding in validator.findings(payload)] == ["json"]


def test_a_value_that_holds_itself_is_not_allowed() -> None:
    payload: list[Any] = []
    payload.append(payload)
    assert validator_for(True).is_valid(payload) is False


def test_a_value_of_a_type_that_only_the_writer_knows_has_a_finding() -> None:
    validator = validator_for({"type": "string"})
    assert validator.is_valid(uuid.UUID(int=1)) is False
    assert len(validator.findings(uuid.UUID(int=1))) == 1


def test_allows_is_the_verdict_on_what_is_known_to_be_json() -> None:
    validator = validator_for({"type": "string"})
    assert [validator.allows(value) for value in ("a", 5, object())] == [True, False, False]


# --------------------------------------------------------------------------------------------------- bounds


@pytest.mark.soak("large documents")
def test_a_large_document_that_is_wrong_in_every_item_has_one_finding() -> None:
    payload = [1] * count("large documents")
    (finding,) = validator_for({"items": {"type": "string"}}).findings(payload)
    assert (finding.pointer, finding.message) == ("/0", "expected string")


@pytest.mark.soak("large documents")
def test_a_large_document_that_is_allowed_has_no_finding() -> None:
    assert validator_for({"items": {"type": "integer"}}).findings([1] * count("large documents")) == ()


BOMBS = json.loads((CORPORA / "schema_bombs.json").read_text())
GENERATED = {
    "enum_100k": ({"enum": list(range(100_000))}, -1),
    "unevaluated_5000": (
        {"allOf": [{"properties": {f"p_{at}": True}} for at in range(5000)], "unevaluatedProperties": False},
        {},
    ),
    "uniqueItems_20k": ({"uniqueItems": True}, [{"a": at} for at in range(20_000)]),
}

# What must come of each: a refusal at this pointer, or this verdict.
COMES_OF = {
    "self_ref": "",
    "mutual_ref": "/$defs/a",
    "remote_http_ref": "/$ref",
    "remote_https_ref": "/$ref",
    "remote_metaschema": "/$schema",
    "remote_id_base": "/$ref",
    "anchor_dup": True,
    "allOf_ref_doubling_12": True,
    "allOf_ref_doubling_22": "/$defs/d14",
    "allOf_ref_doubling_60": "/$defs/d14",
    "anyOf_ref_doubling_12": False,
    "anyOf_ref_doubling_30": "/$defs/d14",
    "anyOf_ref_doubling_60": "/$defs/d14",
    "oneOf_ref_doubling_22": "/$defs/d14",
    "oneOf_ref_doubling_30": "/$defs/d14",
    "oneOf_ref_doubling_60": "/$defs/d14",
    "if_else_chain_small": True,
    "enum_100k": False,
    "uniqueItems_20k": True,
    "multipleOf_tiny": True,
    "type_bogus": "/type",
    "schema_true": True,
    "schema_false": False,
    "unevaluated_5000": True,
    "pattern_properties_redos": False,
    "contentEncoding_bomb": True,
}


def test_every_schema_of_the_corpus_has_its_expectation() -> None:
    assert [row["name"] for row in BOMBS] == list(COMES_OF)


@comes_back
@pytest.mark.parametrize("row", BOMBS, ids=lambda row: row["name"])
def test_a_hostile_schema_is_answered_or_refused(row: dict[str, Any], listener: socket.socket) -> None:
    schema, instance = GENERATED.get(row["name"]) or (row["schema"], row["instance"])
    expected = COMES_OF[row["name"]]
    if isinstance(expected, str):
        assert [finding.pointer for finding in refusal(schema)] == [expected]
    else:
        validator = validator_for(schema)
        assert validator.is_valid(instance) is expected
        assert bool(validator.findings(instance)) is not expected
    # Where the corpus itself says what must come of it.
    if row.get("expect", "").startswith(("rejected", "unsupported", "invalid")):
        assert isinstance(expected, str)


@comes_back
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_the_costliest_union_that_is_allowed_can_still_be_explained(keyword: str) -> None:
    steps = {f"d{step}": {keyword: [{"$ref": f"#/$defs/d{step - 1}"}] * 2} for step in range(1, 14)}
    validator = validator_for({"$ref": "#/$defs/d13", "$defs": {"d0": {"const": "no"}, **steps}})
    assert len(validator.findings(1)) == 1


PATTERNS = json.loads((CORPORA / "redos_patterns.json").read_text())
# Those that no engine matches in linear time, or that are no patterns at all.
NOT_LINEAR = {"(?=a+)a+$", r"^(.)(.)(.)(.)(.)\5\4\3\2\1$", "(?:a?){30000}", "(", r"(?<n>a)\k<n>"}
MATCHES = {r"\p{Cased_Letter}", *(row["pattern"] for row in PATTERNS if row["pattern"].startswith("[a-za-z"))}


@comes_back
@pytest.mark.parametrize("row", PATTERNS, ids=lambda row: row["pattern"][:30])
def test_a_hostile_pattern_is_matched_or_refused(row: dict[str, Any]) -> None:
    pattern, text = row["pattern"], row["unit"] * row["count"] + row["suffix"]
    as_value = {"pattern": pattern}
    as_name = {"patternProperties": {pattern: True}, "additionalProperties": False}
    if pattern in NOT_LINEAR:
        for schema in (as_value, as_name):
            refusal(schema)
        return
    matches = pattern in MATCHES
    for validator, instance in ((validator_for(as_value), text), (validator_for(as_name), {text: 1})):
        assert validator.is_valid(instance) is matches
        assert len(validator.findings(instance)) == (0 if matches else 1)


@comes_back
@pytest.mark.soak("large documents")
@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "(x+x+)+y", "^(a|a?)+$"])
def test_a_pattern_is_matched_against_a_large_text(pattern: str) -> None:
    assert not validator_for({"pattern": pattern}).is_valid("a" * count("large documents") + "!")


# ---------------------------------------------------------------------------------------- random schemas


def thorough(test: Any) -> Any:
    many = settings(max_examples=count("random schemas"), suppress_health_check=[HealthCheck.too_slow])
    return pytest.mark.soak("random schemas")(many(test))


@thorough
@given(SCHEMAS, VALUES)
@example({"type": "integer"}, 1.0)
@example({"enum": [[1]]}, [True])
def test_the_verdict_is_that_of_the_reference_library(schema: Any, value: Any) -> None:
    assert validator_for(schema).is_valid(value) is jsonschema.Draft202012Validator(schema).is_valid(value)


@thorough
@given(SCHEMAS, VALUES)
def test_findings_are_there_exactly_when_the_value_is_not_allowed_and_in_order(
    schema: Any, value: Any
) -> None:
    validator = validator_for(schema)
    findings = validator.findings(value)
    assert bool(findings) is not validator.is_valid(value)
    keys = [(finding.pointer, finding.message) for finding in findings]
    assert keys == sorted(keys)
    assert len(set(findings)) == len(findings)


def resolve(document: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


@thorough
@given(SCHEMAS, VALUES)
def test_every_pointer_leads_somewhere(schema: Any, value: Any) -> None:
    for finding in validator_for(schema).findings(value):
        resolve(value, finding.pointer)
        resolve(schema, finding.schema_pointer)


CANARIES = st.sampled_from(["canary-7f3a", 271828.125, -271828, 271828])


@thorough
@given(SCHEMAS, values(CANARIES | LEAVES))
def test_no_value_of_the_caller_stands_in_a_finding(schema: Any, value: Any) -> None:
    for finding in validator_for(schema).findings(value):
        assert "canary" not in str(finding)
        assert "271828" not in str(finding)


# ------------------------------------------------------------------------------------------------- sharing


def test_one_validator_serves_many_threads() -> None:
    validator = validator_for(PERSON)
    good, bad = {"name": "a", "tags": ["x"] * 50}, {"name": 5, "tags": ["z"] * 50}
    expected = validator.findings(bad)

    def work(_: int) -> bool:
        return (
            validator.is_valid(good) and not validator.is_valid(bad) and validator.findings(bad) == expected
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(400)))


def test_a_validator_holds_nothing_but_what_was_compiled() -> None:
    validator = compile_schema({"type": "string"}, "the fingerprint")
    assert validator.fingerprint == "the fingerprint"
    with pytest.raises(AttributeError):
        validator.more = 1  # type: ignore[attr-defined]


def test_checking_a_document_does_not_change_it() -> None:
    document = {"name": "a", "tags": ["x"], "unknown": {"deep": [1.0, 2**70]}}
    before = repr(document)
    assert not validator_for(PERSON).is_valid(document)
    validator_for(PERSON).findings(document)
    assert repr(document) == before


@pytest.mark.parametrize(
    ("pattern", "is_usable"),
    [("^a+$", True), ("", True), ("(?=a)", False), (r"(a)\1", False), ("(", False), ("a{1,1000000}", False)],
)
def test_a_pattern_is_usable_if_a_schema_may_have_it(pattern: str, is_usable: bool) -> None:
    assert is_usable_pattern(pattern) is is_usable
