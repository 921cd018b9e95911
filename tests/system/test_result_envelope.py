"""The result-envelope specification, section by section, in its order, with golden bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portbook import (
    Controls,
    SchemaRegistry,
    SigningKey,
    Subject,
    enclose,
    failure,
    inspect_envelope,
    unwrap,
    wrap,
)
from portbook.canonical import digest, json_bytes
from portbook.envelope.request_for_envelope import read_controls, read_request
from portbook.model import Occasion
from support.portbook_process import ROOT, run

Golden = Callable[[str, bytes], None]

SCHEMA = SchemaRegistry().load("mcp.envelope.schema.v0.1.json")
VERSION = "mcp.envelope.v0.1"
SUBJECT = Subject("your-tool", "vX.Y.Z", "mcp", arguments={"question": "why"})
KEY = SigningKey(bytes(32))


def wrapped(result: Any) -> Any:
    return {"schema_version": VERSION, "result": result, "provenance": None}


# -- How to adopt


@pytest.mark.covers("003.adopt.json")
def test_json_is_wrapped_unchanged(golden: Golden) -> None:
    envelope = wrap({"your": "existing json payload"})
    assert envelope == wrapped({"your": "existing json payload"})
    golden("result_envelope/json.out", json_bytes(envelope))


@pytest.mark.covers("003.adopt.text")
def test_text_is_wrapped_as_a_string(golden: Golden) -> None:
    envelope = wrap("your existing text output")
    assert envelope == wrapped("your existing text output")
    golden("result_envelope/text.out", json_bytes(envelope))


@pytest.mark.covers("003.adopt.provenance")
@pytest.mark.parametrize("mode", ["minimal", "full"])
def test_a_record_of_inputs_outputs_methods_evidence_and_parents_is_attached(
    mode: Any, golden: Golden
) -> None:
    subject = Subject(
        "your-tool",
        "vX.Y.Z",
        "mcp",
        arguments={"question": "why"},
        definition_digest=digest({"name": "your-tool"}),
        input_schema_digest=digest({"type": "object"}),
        output_schema_digest=digest(True),
        policy_digest=digest({"rules": []}),
        rule="reads are allowed",
        rule_digest=digest({"action": "allow"}),
    )
    asked = Controls(True, True, mode, parents=("9a1c2e9f-5c3f-4a3a-9d5e-1d2b4b6f9c10",))
    envelope = enclose({"answer": "because"}, asked, subject, KEY)
    assert SCHEMA.findings(envelope) == ()
    assert inspect_envelope(envelope, keys=[KEY.public]).is_sound
    record: Any = envelope["provenance"]
    assert record["schema_version"] == "prov.record.v0.1"
    assert record["tool"] == {"name": "your-tool", "version": "vX.Y.Z", "adapter": "mcp"}
    golden(f"result_envelope/provenance_{mode}.out", json_bytes(envelope))


# -- 1. What counts as legacy, 2. The wrapping rule


LEGACY = ["plain", "", {"raw": "object"}, {}, [1, "two", None], [], 42, -1.5, 0, True, False, None]


@pytest.mark.covers("003.legacy")
@pytest.mark.parametrize("payload", LEGACY, ids=json.dumps)
def test_whatever_is_no_envelope_is_wrapped_whole(payload: Any) -> None:
    envelope = wrap(payload)
    assert envelope == wrapped(payload)
    assert list(envelope) == ["schema_version", "result", "provenance"]
    assert SCHEMA.findings(envelope) == ()
    assert unwrap(envelope) is payload


# -- 3. Results with a schema_version of their own


@pytest.mark.covers("003.own-schema-version")
def test_a_schema_version_of_the_results_own_is_kept_intact() -> None:
    payload = {"schema_version": "assist.response.v0.1", "Odd Name": [{"nested": None}], "n": 1.0}
    before = json_bytes(payload)
    for envelope in (wrap(payload), enclose(payload, Controls(True, True), SUBJECT)):
        assert envelope["result"] is payload
        assert json_bytes(envelope["result"]) == before


# -- 4. Errors


@pytest.mark.covers("003.failure.example")
def test_a_failure_is_the_specifications_example_to_the_letter(golden: Golden) -> None:
    envelope = failure(exit_code=2)
    assert json.dumps(envelope) == json.dumps(
        {
            "schema_version": VERSION,
            "result": None,
            "errors": [
                {
                    "code": "ADAPTER.EXECUTION.FAILED",
                    "message": "Tool execution failed with exit code 2.",
                    "details": {"exit_code": 2},
                }
            ],
            "provenance": None,
        }
    )
    golden("result_envelope/failure.out", json_bytes(envelope))


@pytest.mark.covers("003.failure.seen")
@pytest.mark.parametrize(
    ("seen", "details"),
    [
        ({"error": RuntimeError("secret")}, {"exception": "RuntimeError"}),
        ({"exit_code": 3}, {"exit_code": 3}),
        ({"stderr": "no such file"}, {"stderr": "no such file"}),
        ({"exit_code": 3, "stderr": "no such file"}, {"exit_code": 3, "stderr": "no such file"}),
    ],
    ids=["an exception", "an exit code", "standard error", "both"],
)
def test_a_failure_is_told_by_whatever_was_seen_of_it(seen: Any, details: Any) -> None:
    envelope: Any = failure(**seen)
    assert SCHEMA.findings(envelope) == ()
    assert (envelope["result"], len(envelope["errors"])) == (None, 1)
    assert envelope["errors"][0]["code"] == "ADAPTER.EXECUTION.FAILED"
    assert envelope["errors"][0]["details"] == details
    assert "secret" not in json.dumps(envelope)


@pytest.mark.covers("003.failure.partial")
def test_output_from_before_a_failure_is_kept() -> None:
    assert failure(exit_code=2, partial={"half": 1})["result"] == {"half": 1}


# -- 5. Provenance is opt-in


@pytest.mark.covers("003.provenance.opt-in")
@pytest.mark.parametrize(
    ("meta", "has_record", "has_digests"),
    [
        ({}, False, False),
        ({"capture_provenance": False, "capture_artifacts": True, "provenance_mode": "full"}, False, False),
        ({"capture_provenance": True}, True, False),
        ({"capture_provenance": True, "capture_artifacts": True}, True, True),
    ],
    ids=["nothing", "no", "a record", "with digests"],
)
def test_a_record_is_attached_where_it_was_asked_for(meta: Any, has_record: bool, has_digests: bool) -> None:
    record: Any = enclose(1, read_controls(meta), SUBJECT)["provenance"]
    assert (record is not None) is has_record
    if record is not None:
        artifacts = [*record["inputs"], *record["outputs"]]
        assert [("digest" in artifact) for artifact in artifacts] == [has_digests] * 2


# -- 6. Determinism


@pytest.mark.covers("003.determinism.preference")
@pytest.mark.parametrize(("preferences", "is_timeless"), [({}, True), ({"deterministic": False}, False)])
def test_determinism_is_preferred_unless_a_request_says_otherwise(
    preferences: Any, is_timeless: bool
) -> None:
    asked = read_request(
        {
            "schema_version": "mcp.request.v0.1",
            "tool": {"name": "t"},
            "params": {"_meta": {"capture_provenance": True}},
            "artifacts": [],
            "preferences": preferences,
        },
        SchemaRegistry().load("mcp.request.v0.1"),
    )
    occasion = Occasion("r-1", "2026-03-01T00:00:00.000Z", 5)
    envelope: Any = enclose(1, asked.controls, Subject(asked.tool, occasion=occasion))
    assert ("time" not in envelope["provenance"]) is is_timeless
    assert ("meta" not in envelope) is is_timeless


# -- 7. No envelope in an envelope


@pytest.mark.covers("003.pass-through.cli")
def test_a_program_that_prints_an_envelope_has_it_passed_on_to_the_byte(tmp_path: Path) -> None:
    printed = b'{ "result" : {"a":1.50},\n  "schema_version": "mcp.envelope.v0.1", "provenance": null }\n'
    (tmp_path / "envelope.json").write_bytes(printed)
    finished = run("wrap", "--provenance", "full", "--", "cat", "envelope.json", cwd=tmp_path)
    assert (finished.code, finished.out) == (0, printed)


# -- 8. Forward compatibility


def test_an_envelope_has_no_other_members_and_its_result_may_have_any() -> None:
    assert SCHEMA.is_valid(wrap({"anything": {"goes": []}, "provenance": 5}))
    assert not SCHEMA.is_valid({**wrap(1), "signature": "x"})
    assert not SCHEMA.is_valid({**wrap(1), "schema_version": "mcp.envelope.v0.2"})
    assert wrap({"schema_version": "mcp.envelope.v0.2"})["schema_version"] == VERSION


# -- 9. Examples


@pytest.mark.covers("003.examples")
@pytest.mark.parametrize(
    ("given", "result"),
    [({"ok": True, "count": 3}, {"ok": True, "count": 3}), ("done", "done")],
    ids=["9.1", "9.2"],
)
def test_the_examples_are_wrapped_as_shown(given: Any, result: Any, tmp_path: Path) -> None:
    assert {**wrap(given)} == {"schema_version": VERSION, "result": result, "provenance": None}
    printed = run("wrap", "--", "printf", "%s", json.dumps(given), cwd=tmp_path)
    assert printed.answers == [wrap(given)]


@pytest.mark.covers("003.examples.absent-provenance")
def test_an_envelope_without_provenance_means_the_same_as_one_with_null() -> None:
    for envelope in ({"schema_version": VERSION, "result": 1}, wrapped(1)):
        assert SCHEMA.is_valid(envelope)
        assert unwrap(envelope) == 1
        assert inspect_envelope(envelope) == inspect_envelope(wrapped(1))


@pytest.mark.covers("003.examples.pass-through")
def test_an_envelope_is_returned_unchanged() -> None:
    envelope = {"schema_version": VERSION, "result": {"...": "..."}, "provenance": {"...": "..."}}
    assert wrap(envelope) is envelope
    assert envelope == {"schema_version": VERSION, "result": {"...": "..."}, "provenance": {"...": "..."}}


# -- 10. References: tests/envelope/test_contracts.py


def test_the_golden_files_are_sound_envelopes() -> None:
    files = sorted((ROOT / "tests" / "golden" / "result_envelope").glob("*.out"))
    assert len(files) == 5
    for file in files:
        assert inspect_envelope(json.loads(file.read_bytes())).findings == (), file.name
