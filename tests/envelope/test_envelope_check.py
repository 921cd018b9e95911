"""What the schema of envelopes cannot tell: nesting, methods, anchors, digests, signatures."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portbook import Controls, Subject, enclose, inspect_envelope, wrap
from portbook.canonical import NotJSON, digest, jcs_bytes, json_bytes
from portbook.errors import Refused
from portbook.provenance.anchors import Evidence
from portbook.provenance.signing import signed_bytes
from portbook.wire.parsing import parse
from support.counts import count
from support.envelope_samples import KEY, OTHER_KEY, SUBJECT, json_values

FULL = Controls(True, True, "full", parents=("run-0",))
RESULT = {"ok": True, "hits": ["a", "b"], "score": 0.5}


def signed() -> Any:
    return json.loads(json_bytes(enclose(RESULT, FULL, SUBJECT, KEY)))


def unsigned(**changes: Any) -> Any:
    """An envelope whose record has been changed, with a digest that fits again."""
    envelope = json.loads(json_bytes(enclose(RESULT, FULL, SUBJECT)))
    record = envelope["provenance"]
    for name, value in changes.items():
        record[name] = value(record[name]) if callable(value) else value
    rest = {name: value for name, value in record.items() if name != "integrity"}
    record["integrity"] = {"record_digest": {"alg": "sha256", "value": digest(rest)}}
    return envelope


def found(envelope: Any, **brought: Any) -> list[tuple[str, str]]:
    return [(finding.pointer, finding.keyword) for finding in inspect_envelope(envelope, **brought).findings]


def test_a_sound_envelope_is_sound_and_the_notes_say_what_was_not_seen() -> None:
    inspection = inspect_envelope(signed())
    assert inspection.is_sound
    assert inspection.findings == ()
    assert inspection.notes[0].startswith(
        'content not available, so not compared: "arguments", "claimed", "tool.definition"'
    )
    assert inspection.notes[1] == f"signed by {KEY.key_id}, an unverified key: pass the keys you trust"


def test_what_breaks_the_schema_is_told_by_the_schema() -> None:
    assert found({**wrap(1), "extra": 1}) == [("", "additionalProperties")]
    assert found([]) == [("", "type")]
    assert found(unsigned(methods=["Upper"])) == [("/provenance/methods/0", "pattern")]
    upper = unsigned()
    upper["provenance"]["outputs"][0]["digest"]["value"] = "A" * 64
    assert found(upper) == [("/provenance/outputs/0/digest/value", "pattern")]


@pytest.mark.covers("003.check.double-wrap")
def test_an_envelope_in_an_envelope_is_found() -> None:
    assert found({"schema_version": "mcp.envelope.v0.1", "result": wrap(1)}) == [("/result", "double-wrap")]
    assert found(wrap({"inside": wrap(1)})) == []


@pytest.mark.covers("003.check.methods")
@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("adapter-wrap", "is not a method id"),
        ("1.method", "is not a method id"),
        ("policy.check", "starts with policy, which is reserved"),
        ("attestation.x", "reserved"),
        ("execution.x", "reserved"),
        ("audit.x", "reserved"),
        (
            "integrity.digest.sha512",
            "names a method that was not applied: no artifact has a digest of this kind",
        ),
        ("integrity.signature.create", "names a method that was not applied: there is no signature"),
        ("adapter.errors.capture", "names a method that was not applied: there are no errors"),
        ("adapter.warnings.capture", "names a method that was not applied: there are no warnings"),
        (
            "engine.extract.evidence.json_pointer",
            "names a method that was not applied: no evidence has a JSON pointer",
        ),
        (
            "engine.extract.evidence.text_lines",
            "names a method that was not applied: no evidence has lines of text",
        ),
    ],
)
def test_a_method_that_is_none_or_was_not_done_is_found(method: str, said: str) -> None:
    [finding] = inspect_envelope(unsigned(methods=["engine.fine", method])).findings
    assert (finding.pointer, finding.keyword) == ("/provenance/methods/1", "method")
    assert said in finding.message


@pytest.mark.parametrize(
    ("method", "empty"),
    [
        ("lineage.parent.link", {"parents": []}),
        ("engine.prov.artifact.register_input", {"inputs": []}),
        ("engine.prov.artifact.register_output", {"outputs": []}),
    ],
)
def test_a_method_whose_fruits_are_missing_is_found(method: str, empty: Any) -> None:
    assert found(unsigned(methods=[method])) == []
    assert found(unsigned(methods=[method], **empty)) == [("/provenance/methods/0", "method")]


@pytest.mark.covers("003.check.anchors")
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("artifact:result#json:/gone", "names a part that the artifact does not have"),
        ("artifact:result#json:/hits/2", "names a part that the artifact does not have"),
        ("artifact:result#text:line:1", "names a part that the artifact does not have"),
        ("artifact:nobody", "does not name an artifact of the record"),
        ("result", "is not an anchor"),
        ("artifact:result#json:hits", "is not an anchor"),
    ],
)
def test_an_anchor_that_leads_nowhere_is_found(source: str, said: str) -> None:
    evidence = [{"field": "x", "source": "artifact:result#json:/hits/1"}, {"field": "x", "source": source}]
    [finding] = inspect_envelope(unsigned(evidence=evidence)).findings
    assert (finding.pointer, finding.keyword) == ("/provenance/evidence/1/source", "anchor")
    assert said in finding.message


def test_anchors_of_errors_and_warnings_are_looked_at_too() -> None:
    for side in ("errors", "warnings"):
        entry = {"code": "C", "message": "m", "evidence": [{"field": "x", "source": "artifact:gone"}]}
        assert found({**unsigned(), side: [entry]}) == [(f"/{side}/0/evidence/0/source", "anchor")]
        assert found({**wrap(1), side: [entry]}) == [(f"/{side}/0/evidence/0/source", "anchor")]


def test_an_anchor_into_what_the_reader_brings_is_followed() -> None:
    subject = Subject("t", arguments={"a": [1]}, artifacts=SUBJECT.artifacts[:1])
    evidence = (Evidence("x", "artifact:arguments#json:/a/0"), Evidence("x", "artifact:notes#text:line:2"))
    envelope = enclose(1, Controls(True), replace(subject, evidence=evidence))
    assert found(envelope) == []
    assert found(envelope, artifacts={"arguments": b'{"a": [2]}', "notes": b"one\ntwo\n"}) == []
    assert found(envelope, artifacts={"arguments": b'{"a": []}', "notes": b"one\n"}) == [
        ("/provenance/evidence/0/source", "anchor"),
        ("/provenance/evidence/1/source", "anchor"),
    ]


def test_a_method_of_evidence_is_looked_at_too() -> None:
    evidence = [{"field": "x", "source": "artifact:result", "method": "audit.look"}]
    assert found(unsigned(evidence=evidence)) == [("/provenance/evidence/0/method", "method")]


def test_two_artifacts_of_one_name_are_found() -> None:
    twice = unsigned(inputs=lambda inputs: [*inputs, inputs[0]])
    assert found(twice) == [("/provenance/inputs/8/artifact_id", "artifact")]


@pytest.mark.covers("003.check.digests")
def test_a_digest_that_is_not_of_what_is_at_hand_is_found() -> None:
    altered = unsigned()
    altered["result"]["ok"] = False
    assert ("/provenance/outputs/0/digest/value", "digest") in found(altered)
    arguments = json_bytes({"topK": 3, "query": "harbour"})
    assert found(unsigned(), artifacts={"arguments": arguments}) == []
    assert found(unsigned(), artifacts={"arguments": b'{"topK": 3, "query": "harbor"}'}) == [
        ("/provenance/inputs/0/digest/value", "digest"),
        ("/provenance/inputs/0/size_bytes", "digest"),
    ]
    assert found(unsigned(), artifacts={"arguments": b"{"}) == [("/provenance/inputs/0", "digest")]


def test_the_digest_of_a_text_is_of_its_bytes() -> None:
    envelope: Any = json.loads(json_bytes(enclose("one\n", Controls(True, True), Subject("t"))))
    assert found(envelope) == []
    envelope["result"] = "One\n"
    assert found(envelope) == [("/provenance/outputs/0/digest/value", "digest")]


def test_a_wrong_size_is_found() -> None:
    envelope = unsigned(outputs=lambda outputs: [{**outputs[0], "size_bytes": 1}])
    assert found(envelope) == [("/provenance/outputs/0/size_bytes", "digest")]


def test_a_digest_that_cannot_be_computed_here_is_noted_and_no_fault() -> None:
    inspection = inspect_envelope(unsigned(), artifacts={"claimed": b"x"})
    assert inspection.is_sound
    assert (
        "/provenance/inputs/2/digest: blake3 cannot be computed here, so it was not compared"
        in inspection.notes
    )


def test_an_artifact_that_the_record_does_not_have_is_found() -> None:
    assert found(unsigned(), artifacts={"nobody": b""}) == [("/provenance", "artifact")]
    assert found(wrap(1), artifacts={"arguments": b""}) == [("/provenance", "artifact")]


def test_a_record_that_was_altered_is_found_by_its_digest() -> None:
    envelope = unsigned()
    envelope["provenance"]["tool"]["version"] = "2.0"
    assert found(envelope) == [("/provenance/integrity/record_digest/value", "digest")]


def test_a_record_of_which_there_is_no_digest_is_found() -> None:
    envelope = unsigned(inputs=[])
    envelope["provenance"]["outputs"][0]["size_bytes"] = 2**53 + 1
    assert ("/provenance/integrity/record_digest", "digest") in found(envelope)


# -- signatures


def test_a_signature_is_of_everything_but_itself() -> None:
    envelope = signed()
    covered = json.loads(signed_bytes(envelope))
    signature = envelope["provenance"]["integrity"].pop("signature")
    assert covered == envelope
    assert KEY.public.verifies(jcs_bytes(envelope), signature["value"])


@pytest.mark.covers("003.check.signature")
def test_a_reader_who_trusts_a_key_is_told_of_others() -> None:
    envelope = signed()
    assert found(envelope, keys=[KEY.public]) == []
    assert found(envelope, keys=[OTHER_KEY.public, KEY.public]) == []
    assert found(envelope, keys=[OTHER_KEY.public]) == [
        ("/provenance/integrity/signature/key_id", "signature")
    ]
    assert found(unsigned(), keys=[KEY.public]) == [("/provenance", "signature")]
    assert found(wrap(1), keys=[KEY.public]) == [("/provenance", "signature")]
    assert "not signed" in inspect_envelope(unsigned()).notes


@pytest.mark.parametrize(
    ("member", "value", "place"),
    [
        ("alg", "rsa", "alg"),
        ("key_id", "somebody", "key_id"),
        ("key_id", OTHER_KEY.key_id, "value"),
        ("value", "0" * 128, "value"),
        ("value", KEY.sign(b"something else"), "value"),
    ],
)
def test_a_signature_that_is_none_is_found(member: str, value: str, place: str) -> None:
    envelope = signed()
    envelope["provenance"]["integrity"]["signature"][member] = value
    assert found(envelope) == [(f"/provenance/integrity/signature/{place}", "signature")]


def test_a_signature_over_what_has_no_digest_is_found() -> None:
    envelope = signed()
    envelope["result"]["score"] = 2**53 + 1
    assert ("/provenance/integrity/signature", "signature") in found(envelope)


@pytest.mark.parametrize("member", ["result", "errors", "warnings", "meta", "provenance"])
def test_no_member_can_be_added_taken_out_or_changed(member: str) -> None:
    entry = [{"code": "C", "message": "m"}]
    others = {
        "result": None,
        "errors": entry,
        "warnings": entry,
        "meta": {"adapter": "x"},
        "provenance": None,
    }
    changed = {**signed(), member: others[member]}
    assert found(changed, keys=[KEY.public])


@pytest.mark.covers("003.check.altered")
@pytest.mark.soak("altered bytes")
@settings(max_examples=count("altered bytes"))
@given(json_values, st.data())
def test_altering_any_byte_of_a_signed_envelope_is_found(value: Any, data: st.DataObject) -> None:
    written = json_bytes(enclose(value, FULL, SUBJECT, KEY))
    at = data.draw(st.integers(0, len(written) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != written[at]))
    altered = written[:at] + bytes([other]) + written[at + 1 :]
    try:
        envelope = parse(altered)
    except Refused:
        return  # it is not even JSON any more
    try:
        if jcs_bytes(envelope) == jcs_bytes(parse(written)):
            return  # the same content in another spelling, such as 1e0 for 1.0
    except NotJSON:
        pass
    assert found(envelope, keys=[KEY.public])


def test_altering_any_digit_or_letter_of_one_envelope_is_found() -> None:
    written = json_bytes(enclose({"n": 1, "t": "abc"}, FULL, SUBJECT, KEY))
    for at, byte in enumerate(written):
        if chr(byte).isalnum():
            other = b"2" if byte != ord("2") else b"3"
            try:
                envelope = parse(written[:at] + other + written[at + 1 :])
            except Refused:
                continue
            assert found(envelope, keys=[KEY.public]), written[max(0, at - 20) : at + 5]


def test_what_has_no_digest_was_not_compared_and_that_is_told() -> None:
    envelope = enclose({"left": 40}, Controls(capture_provenance=True), Subject("count", arguments={"a": 1}))
    notes = inspect_envelope(envelope).notes
    assert 'without a digest, so not compared: "arguments", "result"' in notes
