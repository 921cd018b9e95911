"""Records: what of a run is in them, under which names, and what they are never made to say."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import replace
from typing import Any

import pytest

from portbook.canonical import canonical_bytes, digest
from portbook.ids import run_id
from portbook.model import Occasion
from portbook.provenance.artifacts import Artifact
from portbook.provenance.record_inputs_and_outputs import ProvenanceForm, Subject, inputs_of
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


def record(subject: Subject = SUBJECT, content: Any = "out", *, is_deterministic: bool = True) -> Any:
    form = ProvenanceForm(
        subject,
        inputs=inputs_of(subject, is_digested=False, is_full=False),
        outputs=(),
        evidence=(),
        parents=(),
        done=["engine.a", "engine.b", "engine.a"],
        time=None if is_deterministic else subject.occasion.time,
    )
    return form.record_of(
        subject.arguments,
        content,
        request_id=subject.request_id,
        occasion=None if is_deterministic else subject.occasion.request_id,
    )


def test_a_record_is_what_its_schema_allows() -> None:
    assert SchemaRegistry().load("prov.record.v0.1").findings(record()) == ()


def test_the_id_of_a_run_is_derived_from_its_content_as_a_whole() -> None:
    # The content has one canonical form, in which an integer from 2^64 on changes how floats are written.
    numbers = [1, 1e-7, None, 2**64, "text"]
    for arguments, result in itertools.product(numbers, numbers):
        made = record(replace(SUBJECT, arguments={"a": arguments}), [result])
        bare = {name: value for name, value in made.items() if name != "integrity"} | {"run_id": ""}
        whole = canonical_bytes([bare, {"a": arguments}, None, [[result], []], None])
        assert made["run_id"] == run_id(hashlib.sha256(whole).hexdigest())


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
