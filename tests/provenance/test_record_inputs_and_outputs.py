"""The inputs and the output of a run, as artifacts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portbook.canonical import digest
from portbook.provenance.artifacts import Artifact, Digest
from portbook.provenance.record_inputs_and_outputs import Subject, inputs_of, output_of, referred_artifact
from portbook.tools.contract_registry import SchemaRegistry

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
    ("reference", "artifact"),
    [
        ({"artifact_id": "a"}, Artifact("a", "application/octet-stream")),
        ({"locator": "file:x"}, Artifact("artifact.3", "application/octet-stream", "file:x")),
        (
            {"artifact_id": "a", "media_type": "text/plain", "labels": {"role": "x"}},
            Artifact("a", "text/plain", labels={"role": "x"}),
        ),
        (
            {"artifact_id": "a", "digest": {"alg": "sha512", "value": "0" * 128}},
            Artifact(
                "a",
                "application/octet-stream",
                digest=Digest("sha512", "0" * 128),
                labels={"digest": "claimed"},
            ),
        ),
        ({"artifact_id": "a", "labels": {"digest": "mine"}}, Artifact("a", "application/octet-stream")),
    ],
)
def test_a_reference_becomes_an_artifact_whose_digest_is_a_claim(reference: Any, artifact: Artifact) -> None:
    made = referred_artifact(reference, 3)
    assert made == artifact
    assert made.is_claimed is ("digest" in reference)
    assert SchemaRegistry().load("artifact.v0.1").is_valid(made.to_json())


# What is known about a run, and what it may not hold.


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
