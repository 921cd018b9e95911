from __future__ import annotations

import random
from typing import Any

import jsonschema
import pytest

from portbook.protocol.message_validation import RESULT, SchemaValidator
from portbook.protocol.revisions_and_methods import METHODS, method_of
from portbook.schema.engine import SchemaViolation
from portbook.schema.official_schemas import REVISIONS
from support.counts import count, seed
from support.official_samples import STORE, broken, definitions, sample

VALIDATOR = SchemaValidator(STORE)
VALIDATOR.initialize()

# We assert formats in every revision, so the other implementation does too.
FORMATS = jsonschema.FormatChecker(())
FORMATS.checks("uri")(lambda value: not isinstance(value, str) or ":" in value)

MUTATIONS = 12

TYPES = [
    (revision, method.name + suffix, definition)
    for revision in REVISIONS
    for method in METHODS
    if method_of(method.name, revision) is method
    for suffix, definition in (("", method.definition), (RESULT, method.result))
    if definition is not None
]


def test_a_validator_is_made_ready_once_and_can_be_let_go() -> None:
    validator = SchemaValidator(STORE)
    with pytest.raises(RuntimeError, match="before initialize"):
        validator.validate("ping", {}, "2025-11-25")
    validator.initialize()
    validator.initialize()
    validator.validate("ping", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, "2025-11-25")
    validator.shutdown()
    with pytest.raises(RuntimeError, match="before initialize"):
        validator.findings("ping", {}, "2025-11-25")


@pytest.mark.parametrize("message_type", ["no/such", "initialize", "notifications/cancelled" + RESULT])
def test_a_type_that_a_revision_does_not_have_is_a_key_error(message_type: str) -> None:
    with pytest.raises(KeyError):
        VALIDATOR.findings(message_type, {}, "2026-07-28")


def oracle(revision: str, message_type: str, definition: str, message: Any) -> bool:
    """The verdict of another implementation, by the same definitions and without our shortcuts."""
    document: Any = STORE.document(revision)
    key = "$defs" if "$defs" in document else "definitions"
    names = [definition]
    if key == "definitions" and not message_type.endswith(RESULT):
        names.append("JSONRPCNotification" if definition.endswith("Notification") else "JSONRPCRequest")
    cls = jsonschema.Draft202012Validator if key == "$defs" else jsonschema.Draft7Validator
    return all(
        cls({"$ref": f"#/{key}/{name}", key: document[key]}, format_checker=FORMATS).is_valid(message)
        for name in names
    )


@pytest.mark.covers("001.validator.differential")
@pytest.mark.soak("broken messages")
@pytest.mark.parametrize(("revision", "message_type", "definition"), TYPES, ids=str)
def test_verdicts_are_those_of_another_implementation(
    revision: str, message_type: str, definition: str
) -> None:
    chance = random.Random(f"{seed()} {revision} {message_type}")
    verdicts: set[bool] = set()
    for number in range(count("broken messages")):
        message = sample(revision, definition, seed() + number)
        if not message_type.endswith(RESULT):
            message |= {"jsonrpc": "2.0"}
            message |= {} if definition.endswith("Notification") else {"id": number}
        for candidate in (message, *broken(message, chance, MUTATIONS)):
            if _asks_for_input(candidate):
                continue  # another definition decides, on purpose
            findings = VALIDATOR.findings(message_type, candidate, revision)
            expected = oracle(revision, message_type, definition, candidate)
            assert (not findings) == expected, (candidate, findings)
            verdicts.add(expected)
    assert True in verdicts, "no valid message was made"
    assert False in verdicts, "no message was broken"


def _asks_for_input(candidate: Any) -> bool:
    return isinstance(candidate, dict) and candidate.get("resultType") == "input_required"


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (
            "request",
            {"jsonrpc": "2.0", "id": 1, "method": "x"},
            {"jsonrpc": "2.0", "id": None, "method": "x"},
        ),
        ("notification", {"jsonrpc": "2.0", "method": "x"}, {"jsonrpc": "1.0", "method": "x"}),
        (
            "response",
            {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}},
            {"jsonrpc": "2.0", "id": 1},
        ),
        (
            "error",
            {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
            {"jsonrpc": "2.0", "id": 1},
        ),
    ],
)
def test_the_generic_kinds_of_message_have_types_of_their_own(
    revision: str, kind: str, good: Any, bad: Any
) -> None:
    VALIDATOR.validate(kind, good, revision)
    with pytest.raises(SchemaViolation):
        VALIDATOR.validate(kind, bad, revision)


@pytest.mark.covers("001.schema.holes")
def test_a_malformed_result_does_not_pass_as_a_round_of_input() -> None:
    malformed = {"resultType": "complete", "content": "not a list"}
    assert VALIDATOR.findings("tools/call" + RESULT, malformed)
    assert not VALIDATOR.findings(
        "tools/call" + RESULT, {"resultType": "input_required", "inputRequests": {}}
    )
    listing = {"resultType": "input_required", "tools": [], "ttlMs": 0, "cacheScope": "public"}
    assert VALIDATOR.findings("tools/list" + RESULT, listing)
    assert not VALIDATOR.findings("tools/list" + RESULT, {**listing, "resultType": "complete"})
    assert not VALIDATOR.findings(
        "tools/call" + RESULT, {"content": [], "resultType": "input_required"}, "2025-11-25"
    )


@pytest.mark.covers("001.schema.overlay")
def test_floats_and_null_are_json_values_in_the_newest_revision() -> None:
    for value in (1.5, None, [None, 0.5], {"a": None}):
        capabilities = {"experimental": {"x": {"y": value}}}
        result = {"capabilities": capabilities, "supportedVersions": [], "resultType": "complete", "ttlMs": 0}
        assert not VALIDATOR.findings("server/discover" + RESULT, {**result, "cacheScope": "public"})


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_definition_of_a_revision_compiles(revision: str) -> None:
    for name in definitions(revision):
        STORE.definition(revision, name)
