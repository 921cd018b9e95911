"""Records: what of a run is in them, under which names, and what they are never made to say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portbook.canonical import digest
from portbook.provenance.artifacts import Artifact, Digest
from portbook.provenance.occasion import Occasion
from portbook.provenance.record import Subject, build_record, inputs_of, output_of
from portbook.tools.registry import SchemaRegistry

SUBJECT = Subject("t", "1", arguments={"a": 1})
GOVERNED = replace(
    SUBJECT,
    definition_digest="1" * 64,
    input_schema_digest="2" * 64,
    output_schema_digest="3" * 64,
    policy_digest="4" * 64,
    rule="reads are allowed",
    rule_digest="5" * 64,
)


def record(subject: Subject = SUBJECT, content: Any = "out", *, is_deterministic: bool = True) -> Any:
    return build_record(
        subject,
        inputs=inputs_of(subject, is_digested=False, is_full=False),
        outputs=(),
        evidence=(),
        parents=(),
        done=["engine.a", "engine.b", "engine.a"],
        content=content,
        is_deterministic=is_deterministic,
    )


def test_a_record_is_what_its_schema_allows() -> None:
    assert SchemaRegistry().load("prov.record.v0.1").findings(record()) == ()


def test_a_method_is_named_once() -> None:
    assert record()["methods"] == ["engine.a", "engine.b"]


def test_the_digest_of_a_record_is_of_all_but_its_integrity() -> None:
    made = record()
    assert made.pop("integrity") == {"record_digest": {"alg": "sha256", "value": digest(made)}}


@pytest.mark.parametrize(
    "other",
    [
        replace(SUBJECT, tool="u"),
        replace(SUBJECT, version="2"),
        replace(SUBJECT, arguments={"a": 2}),
        replace(SUBJECT, arguments=None),
        replace(SUBJECT, request_id="r"),
        replace(SUBJECT, artifacts=(Artifact("x", "text/plain"),)),
    ],
)
def test_another_run_has_another_id(other: Subject) -> None:
    assert record(other)["run_id"] != record()["run_id"]
    assert record(content="else")["run_id"] != record()["run_id"]


def test_the_same_run_has_the_same_id_on_any_occasion() -> None:
    later = replace(SUBJECT, occasion=Occasion("r2", "2026-03-01T00:00:00Z", 5.0))
    assert record(later) == record()
    assert "time" not in record(later)


def test_without_determinism_every_occasion_is_a_run_of_its_own() -> None:
    first, second = (
        record(replace(SUBJECT, occasion=Occasion(name, time)), is_deterministic=False)
        for name, time in (("r1", "2026-03-01T00:00:00.000Z"), ("r2", "2026-03-01T00:00:00.000Z"))
    )
    assert first["run_id"] != second["run_id"]
    assert first["time"] == "2026-03-01T00:00:00.000Z"
    assert SchemaRegistry().load("prov.record.v0.1").findings(first) == ()


def test_the_inputs_are_the_arguments_and_in_full_what_governed_them() -> None:
    assert [item.artifact_id for item in inputs_of(GOVERNED, is_digested=True, is_full=False)] == [
        "arguments"
    ]
    found = {item.artifact_id: item for item in inputs_of(GOVERNED, is_digested=True, is_full=True)}
    digests = {
        name: item.digest.value[0] for name, item in found.items() if item.digest and name != "arguments"
    }
    assert digests == {
        "tool.definition": "1",
        "tool.input_schema": "2",
        "tool.output_schema": "3",
        "policy": "4",
        "policy.rule": "5",
    }
    assert found["arguments"].digest == Digest("sha256", digest({"a": 1}))
    assert found["policy.rule"].labels["rule"] == "reads are allowed"


def test_what_is_not_known_is_not_there() -> None:
    assert inputs_of(Subject("t"), is_digested=True, is_full=True) == ()
    [rule] = inputs_of(Subject("t", rule="r"), is_digested=True, is_full=True)
    assert rule.digest is None


def test_artifacts_whose_names_are_taken_get_others() -> None:
    named = tuple(
        Artifact(name, "text/plain") for name in ("a", "a", "result", "arguments", "artifact.0", "policy")
    )
    found = inputs_of(replace(GOVERNED, artifacts=named), is_digested=False, is_full=True)
    names = [item.artifact_id for item in found]
    assert len(set(names)) == len(names)
    assert names[:2] == ["arguments", "a"]
    assert [item.labels.get("named") for item in found if "named" in item.labels] == [
        "a", "result", "arguments", "artifact.0", "policy",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("result", "media_type"),
    [
        ("text", "text/plain"),
        (None, "application/json"),
        ({"a": 1}, "application/json"),
        (1.5, "application/json"),
    ],
)
def test_the_output_is_the_result(result: Any, media_type: str) -> None:
    output = output_of(result, is_digested=True)
    assert (output.artifact_id, output.media_type, output.labels) == (
        "result",
        media_type,
        {"role": "result"},
    )
    expected = (
        "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
        if result == "text"
        else digest(result)
    )
    assert output.digest == Digest("sha256", expected)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tool": ""}, "tool: must have 1 to 200 characters"),
        ({"tool": "x" * 201}, "tool: must have 1 to 200 characters"),
        ({"tool": "t", "version": ""}, "version: must have 1 to 100 characters"),
        ({"tool": "t", "adapter": "x" * 101}, "adapter: must have 1 to 100 characters"),
        ({"tool": "t", "request_id": "x" * 201}, "request_id: must have 0 to 200 characters"),
        ({"tool": "t", "policy_digest": "A" * 64}, "policy_digest: must be 64 lower-case hexadecimal digits"),
        ({"tool": "t", "rule_digest": ""}, "rule_digest: must be 64 lower-case hexadecimal digits"),
        ({"tool": "t", "methods": ("Bad-id",)}, "methods: 'Bad-id' is not a method id"),
        ({"tool": "t", "methods": ("engine.ok", "audit.x")}, "starts with audit, which is reserved"),
    ],
)
def test_a_subject_that_no_record_may_hold_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Subject(**given)
