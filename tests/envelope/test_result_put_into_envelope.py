"""From an outcome to its envelope: what is in it, what is not, and that it is always the same."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook import (
    Controls,
    Failure,
    Problem,
    SchemaRegistry,
    Subject,
    enclose,
    failure,
    inspect_envelope,
    unwrap,
)
from portbook.canonical import canonical_bytes, digest, json_bytes
from portbook.envelope.request_for_envelope import Mode, read_controls
from portbook.errors import Ending, Failed, Finding, Reason, Refused
from portbook.provenance.anchors import Evidence
from portbook.provenance.artifacts import Artifact
from support.envelope_samples import KEY, SUBJECT, json_values

SCHEMA = SchemaRegistry().load("mcp.envelope.v0.1")
PROVENANCE = Controls(True)
DIGESTS = Controls(True, True)
FULL = Controls(True, True, "full", parents=("run-0",))

REFUSAL = Refused(Reason.BAD_ARGUMENTS, (Finding("/topK", "above the maximum 100", "maximum", ""),))
SECOND_LINE = Evidence("x", "artifact:result#text:line:2")
FAILURE = Failure((Problem("MY.CODE", "It broke.", {"n": 1}, retryable=True),), {"partial": True})


OUTCOMES: list[Any] = [
    {"ok": True}, "text", None, [1.5], 0, False, FAILURE, Failure((Problem("C", "M"),)), REFUSAL,
]  # fmt: skip
MODES: tuple[Mode, ...] = ("minimal", "full")
CHOICES = [*product((False, True), (False, True), MODES)]
CONTROLS = [
    Controls(captures, digests, mode, parents=("p",) if digests else (), deterministic=not digests)
    for captures, digests, mode in CHOICES
]


@pytest.mark.parametrize("signer", [None, KEY], ids=["unsigned", "signed"])
@pytest.mark.parametrize("asked", CONTROLS, ids=map(str, CHOICES))
@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: str(outcome)[:20])
def test_every_envelope_is_sound(outcome: Any, asked: Controls, signer: Any) -> None:
    envelope = enclose(outcome, asked, SUBJECT, signer)
    assert SCHEMA.findings(envelope) == ()
    assert inspect_envelope(envelope).findings == ()
    assert (envelope["provenance"] is not None) is asked.capture_provenance
    assert inspect_envelope(json.loads(json_bytes(envelope))).is_sound


@given(json_values, st.sampled_from(CONTROLS))
def test_any_json_value_with_provenance_is_sound_and_comes_out_equal(value: Any, asked: Controls) -> None:
    envelope = enclose(value, asked, SUBJECT, KEY)
    assert inspect_envelope(json.loads(json_bytes(envelope))).findings == ()
    assert canonical_bytes(unwrap(envelope)) == canonical_bytes(value)


@pytest.mark.covers("003.pass-through")
@pytest.mark.parametrize("asked", [Controls(), FULL], ids=["nothing asked", "everything asked"])
def test_an_envelope_is_returned_as_it_is_whatever_was_asked(asked: Controls) -> None:
    for envelope in (
        {"schema_version": "mcp.envelope.v0.1", "result": {"a": 1}, "provenance": {"b": 2}},
        {"schema_version": "mcp.envelope.v0.1", "broken": True},
    ):
        before = json_bytes(envelope)
        assert enclose(envelope, asked, SUBJECT, KEY) is envelope
        assert json_bytes(envelope) == before


def test_an_output_that_is_an_envelope_is_not_nested_by_a_failure_either() -> None:
    envelope = {"schema_version": "mcp.envelope.v0.1", "result": None}
    assert enclose(Failure((Problem("C", "m"),), envelope), FULL, SUBJECT) is envelope
    assert failure(exit_code=1, partial=envelope) is envelope


def test_the_members_come_in_one_order() -> None:
    asked = replace(FULL, warnings=(Problem("W", "w"),))
    envelope = enclose(FAILURE, asked, replace(SUBJECT, request_id="r"))
    assert list(envelope) == ["schema_version", "result", "errors", "warnings", "provenance", "meta"]


# -- results and failures


def test_nothing_is_added_to_a_result_of_which_nothing_was_asked() -> None:
    assert enclose({"ok": True}, Controls(), SUBJECT) == {
        "schema_version": "mcp.envelope.v0.1",
        "result": {"ok": True},
        "provenance": None,
    }


def test_without_a_subject_there_is_no_provenance() -> None:
    assert enclose(1, FULL)["provenance"] is None


def test_a_failure_has_its_errors_and_the_output_there_was() -> None:
    assert enclose(FAILURE, Controls(), SUBJECT) == {
        "schema_version": "mcp.envelope.v0.1",
        "result": {"partial": True},
        "errors": [{"code": "MY.CODE", "message": "It broke.", "details": {"n": 1}, "retryable": True}],
        "provenance": None,
    }


def test_a_failure_without_output_has_no_output_artifact_and_one_with_output_has() -> None:
    assert record(enclose(Failure((Problem("C", "M"),)), DIGESTS, SUBJECT))["outputs"] == []
    [output] = record(enclose(FAILURE, DIGESTS, SUBJECT))["outputs"]
    assert output["digest"]["value"] == digest({"partial": True})
    [null] = record(enclose(None, DIGESTS, SUBJECT))["outputs"]
    assert null["digest"]["value"] == digest(None)


def test_wrong_arguments_are_pointed_at_where_there_is_a_record_to_point_into() -> None:
    [error] = enclose(REFUSAL, DIGESTS, SUBJECT)["errors"]  # type: ignore[misc,union-attr]
    assert isinstance(error, dict)
    assert error["evidence"] == [
        {
            "schema_version": "evidence.v0.1",
            "field": "/errors/0",
            "source": "artifact:arguments#json:/topK",
            "note": "above the maximum 100",
        }
    ]
    assert "engine.extract.evidence.json_pointer" in record(enclose(REFUSAL, DIGESTS, SUBJECT))["methods"]
    assert "evidence" not in json_bytes(enclose(REFUSAL, Controls(), SUBJECT)).decode()


def test_an_ending_that_ran_says_so() -> None:
    endings: tuple[Ending, ...] = (Refused(Reason.BUSY), Failed(Reason.TIMEOUT))
    executed = [enclose(ending, Controls())["errors"][0]["details"]["executed"] for ending in endings]  # type: ignore[index,call-overload]
    assert executed == [False, True]


# -- records


def record(envelope: Any) -> Any:
    assert envelope["provenance"] is not None
    return envelope["provenance"]


def test_a_minimal_record_names_what_went_in_and_came_out() -> None:
    made = record(enclose({"ok": True}, PROVENANCE, SUBJECT))
    assert made["tool"] == {"name": "docs.search", "version": "1.0", "adapter": "portbook"}
    assert [item["artifact_id"] for item in made["inputs"]] == ["arguments", "notes", "claimed"]
    assert [item["artifact_id"] for item in made["outputs"]] == ["result"]
    assert ["digest" in item for item in (*made["inputs"], *made["outputs"])] == [False, False, True, False]
    assert (made["evidence"], made["parents"]) == ([], [])


def test_digests_are_there_where_they_were_asked_for() -> None:
    made = record(enclose({"ok": True}, DIGESTS, SUBJECT))
    assert made["inputs"][0]["digest"]["value"] == digest(SUBJECT.arguments)
    assert made["inputs"][0]["size_bytes"] == len(canonical_bytes(SUBJECT.arguments))
    assert made["outputs"][0]["digest"]["value"] == digest({"ok": True})


def test_a_full_record_names_what_governed_the_run() -> None:
    made = record(enclose({"ok": True}, FULL, SUBJECT))
    assert [item["artifact_id"] for item in made["inputs"]][3:] == [
        "tool.definition", "tool.input_schema", "tool.output_schema", "policy", "policy.rule",
    ]  # fmt: skip
    assert made["parents"] == ["run-0"]


@pytest.mark.covers("003.provenance.methods")
@pytest.mark.parametrize(
    ("outcome", "asked", "subject", "signer", "named"),
    [
        (1, PROVENANCE, Subject("t"), None, set()),
        (1, PROVENANCE, Subject("t", arguments={}), None, {"register_input"}),
        (1, DIGESTS, Subject("t"), None, {"sha256"}),
        (1, replace(PROVENANCE, parents=("p",)), Subject("t"), None, {"link"}),
        (1, replace(PROVENANCE, warnings=(Problem("W", "w"),)), Subject("t"), None, {"warnings"}),
        (FAILURE, PROVENANCE, Subject("t"), None, {"errors"}),
        (1, PROVENANCE, Subject("t"), KEY, {"signature"}),
        (1, PROVENANCE, Subject("t", methods=("engine.check.arguments",)), None, {"engine.check.arguments"}),
        (1, PROVENANCE, Subject("t", artifacts=SUBJECT.artifacts[1:]), None, {"register_input"}),
        ("a\nb", PROVENANCE, Subject("t", evidence=(SECOND_LINE,)), None, {"text_lines"}),
    ],
    ids=lambda value: "",
)  # fmt: skip
def test_a_record_names_what_was_done_and_nothing_else(
    outcome: Any, asked: Controls, subject: Subject, signer: Any, named: set[str]
) -> None:
    always = {
        "engine.prov.artifact.register_output",
        "engine.prov.record_v0_1.build",
        "integrity.record_digest.compute",
        "adapter.wrap.envelope_v0_1",
        "adapter.provenance.attach_record_v0_1",
    }
    found = set(record(enclose(outcome, asked, subject, signer))["methods"])
    assert always <= found
    assert len(found - always) == len(named)
    assert all(any(word in method for method in found - always) for word in named)


@pytest.mark.covers("003.provenance.evidence")
def test_evidence_whose_anchor_leads_nowhere_is_left_out_with_a_warning() -> None:
    good = (
        Evidence("query", "artifact:arguments#json:/query", "engine.extract.evidence.json_pointer"),
        Evidence("ok", "artifact:result#json:/ok"),
        Evidence("notes", "artifact:notes#text:line:1-2"),
    )
    bad = (
        Evidence("gone", "artifact:arguments#json:/gone"),
        Evidence("nobody", "artifact:nobody"),
        Evidence("nothing", "nothing"),
    )
    sound = enclose({"ok": True}, PROVENANCE, replace(SUBJECT, evidence=good))
    assert [item["field"] for item in record(sound)["evidence"]] == ["query", "ok", "notes"]
    assert "warnings" not in sound
    partly = enclose({"ok": True}, PROVENANCE, replace(SUBJECT, evidence=(*good, *bad)))
    assert record(partly)["evidence"] == record(sound)["evidence"]
    [warning] = partly["warnings"]  # type: ignore[misc,union-attr]
    assert isinstance(warning, dict)
    assert warning["code"] == "ADAPTER.EVIDENCE.UNRESOLVED"


def test_evidence_of_errors_is_kept_where_it_leads_to_something_and_where_there_is_a_record() -> None:
    good, bad = Evidence("x", "artifact:arguments#json:/query"), Evidence("x", "artifact:gone")
    broken = Failure((Problem("C", "m", evidence=(good, bad)),))
    envelope: Any = enclose(broken, PROVENANCE, SUBJECT)
    assert [item["source"] for item in envelope["errors"][0]["evidence"]] == [good.source]
    assert [warning["code"] for warning in envelope["warnings"]] == ["ADAPTER.EVIDENCE.UNRESOLVED"]
    assert inspect_envelope(envelope).is_sound
    assert inspect_envelope(enclose(broken, Controls(), SUBJECT)).is_sound


@pytest.mark.covers("003.provenance.no-network")
def test_nothing_is_fetched_or_opened_to_make_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("somebody went to look")

    for name in ("socket.socket", "socket.getaddrinfo", "builtins.open", "os.open", "subprocess.Popen"):
        monkeypatch.setattr(name, forbidden)
    named = (
        Artifact("a", "text/plain", "http://127.0.0.1:9/a"),
        Artifact("b", "text/plain", "file:///etc/passwd"),
    )
    envelope = enclose({"ok": True}, FULL, replace(SUBJECT, artifacts=named), KEY)
    monkeypatch.undo()
    assert ["digest" in item for item in record(envelope)["inputs"][1:3]] == [False, False]


@pytest.mark.covers("003.provenance.reliable")
@pytest.mark.parametrize(
    ("outcome", "asked", "subject", "signer"),
    [
        ({"id": 2**53 + 1}, DIGESTS, SUBJECT, None),
        ({"id": 2**53 + 1}, PROVENANCE, SUBJECT, KEY),
        (1, DIGESTS, replace(SUBJECT, arguments={"id": 2**53 + 1}), None),
    ],
    ids=["a digest of the result", "a signature over the result", "a digest of the arguments"],
)
def test_where_no_digest_can_be_trusted_provenance_is_null_and_a_warning_says_why(
    outcome: Any, asked: Controls, subject: Subject, signer: Any
) -> None:
    envelope = enclose(outcome, asked, subject, signer)
    assert envelope["provenance"] is None
    assert unwrap(envelope) == outcome
    assert envelope["warnings"] == [
        {
            "code": "ADAPTER.PROVENANCE.OMITTED",
            "message": "Provenance is omitted, because a digest cannot be computed: the value has an integer "
            "beyond 2^53 that would be rounded; write it as a string.",
        }
    ]
    assert SCHEMA.findings(envelope) == ()


def test_a_number_that_has_no_digest_does_not_matter_where_none_is_made() -> None:
    assert inspect_envelope(enclose({"id": 2**53 + 1}, PROVENANCE, SUBJECT)).is_sound


def test_an_output_beyond_what_the_caller_prefers_is_whole_and_warned_of() -> None:
    asked = Controls(max_output_bytes=5)
    assert "warnings" not in enclose("abc", asked)
    envelope = enclose("abcd", asked)
    assert unwrap(envelope) == "abcd"
    assert envelope["warnings"] == [
        {
            "code": "ADAPTER.OUTPUT.OVERSIZE",
            "message": "The result is larger than preferences/max_output_bytes; it is not truncated.",
            "details": {"max_output_bytes": 5},
        }
    ]


def test_warnings_of_controls_are_in_the_envelope() -> None:
    envelope = enclose(1, read_controls({"capture_provenance": "yes"}))
    assert [warning["code"] for warning in envelope["warnings"]] == ["ADAPTER.CONTROLS.IGNORED"]  # type: ignore[union-attr,index,call-overload]
    assert SCHEMA.findings(envelope) == ()


# -- determinism


@pytest.mark.covers("003.determinism")
@pytest.mark.parametrize("signer", [None, KEY], ids=["unsigned", "signed"])
@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: str(outcome)[:20])
def test_the_same_request_twice_is_the_same_bytes(outcome: Any, signer: Any) -> None:
    first = enclose(outcome, FULL, SUBJECT, signer)
    later = SUBJECT.occasion._replace(request_id="another", time="2027-01-01T00:00:00Z", duration_ms=99.0)
    second = enclose(outcome, FULL, replace(SUBJECT, occasion=later), signer)
    assert json_bytes(first) == json_bytes(second)
    assert "meta" not in first
    assert "time" not in record(first)


def test_without_determinism_the_occasion_is_told() -> None:
    envelope = enclose(1, replace(FULL, deterministic=False), SUBJECT)
    assert envelope["meta"] == {"adapter": "portbook", "request_id": "random", "duration_ms": 13}
    assert record(envelope)["time"] == "2026-03-01T00:00:00.000Z"


def test_the_callers_own_name_for_its_request_comes_back_either_way() -> None:
    subject = replace(SUBJECT, request_id="req-1")
    assert enclose(1, Controls(), subject)["meta"] == {"adapter": "portbook", "request_id": "req-1"}
    told = enclose(1, Controls(deterministic=False), subject)["meta"]
    assert told == {"adapter": "portbook", "request_id": "req-1", "duration_ms": 13}


def test_what_was_handed_in_is_not_changed() -> None:
    result = {"b": [1], "a": {"c": None}}
    artifacts = (Artifact("x", "text/plain", labels={"role": "y"}),)
    before = repr((result, artifacts))
    envelope = enclose(result, FULL, replace(SUBJECT, artifacts=artifacts), KEY)
    assert repr((result, artifacts)) == before
    assert envelope["result"] is result
