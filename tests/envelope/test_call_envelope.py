"""Who gets an envelope around the result of a call, and with what in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook import Subject, Toolset, enclose
from portbook.canonical import json_bytes
from portbook.envelope import call_envelope
from portbook.envelope.call_envelope import CallEnvelopes, KnownRun
from portbook.envelope.request_for_envelope import Default
from portbook.errors import Failed, Reason
from portbook.model import EnvelopeRequest, Occasion
from portbook.tools.catalog import Catalog, Tool
from support.envelope_samples import KEY, json_values, text


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


NO_RECORD = {"capture_provenance": False}
RECORD = {"capture_provenance": True}


@pytest.mark.parametrize(
    ("default", "wish", "is_wanted", "has_record"),
    [
        case("nobody asks", "off", None, False, False),
        case("what is asked is not ours", "off", EnvelopeRequest({"else": 1}), False, False),
        case("the caller asks for a record", "off", EnvelopeRequest(RECORD), True, True),
        case("the caller asks for no more than the default", "off", EnvelopeRequest(NO_RECORD), False, False),
        case("the contract has it so", "off", EnvelopeRequest(is_required=True), True, False),
        case("and so whatever is asked", "off", EnvelopeRequest(NO_RECORD, is_required=True), True, False),
        case("the operator gives envelopes", "wrap", None, True, False),
        case("and a record where one is asked for", "wrap", EnvelopeRequest(RECORD), True, True),
        case("the operator gives records", "provenance", EnvelopeRequest(is_required=True), True, True),
    ],
)
def test_whoever_asks_gets_an_envelope_and_everybody_where_the_operator_gives_them(
    default: Default, wish: EnvelopeRequest | None, is_wanted: bool, has_record: bool
) -> None:
    controls = CallEnvelopes(default).controls_of(wish)
    assert (controls is not None and controls.is_wanted) is is_wanted
    assert (controls is not None and controls.capture_provenance) is has_record


@pytest.mark.parametrize(
    ("preferences", "deterministic", "limit"),
    [
        case("none", {}, True, None),
        case("the occasion too", {"deterministic": False}, False, None),
        case("a limit that JSON writes as a float", {"max_output_bytes": 1e3}, True, 1000),
    ],
)
def test_a_callers_preferences_are_heeded(
    preferences: dict[str, Any], deterministic: bool, limit: int | None
) -> None:
    controls = CallEnvelopes().controls_of(EnvelopeRequest(preferences=preferences, is_required=True))
    assert controls is not None
    assert (controls.deterministic, controls.max_output_bytes) == (deterministic, limit)
    assert type(controls.max_output_bytes) is type(limit)


def tool(description: str = "Say it again.", name: str = "t") -> Tool:
    toolset = Toolset("enclosed")

    @toolset.tool(effect="read", name=name, description=description)
    async def t(a: int) -> dict[str, int]:
        return {"a": a}

    found = Catalog(toolset.specs()).find(name, "tool")
    assert found is not None
    return found


TOOL, CHANGED = tool(), tool("Say it once more.")


def enclosed_anew(result: Any, wish: EnvelopeRequest, known: KnownRun, signer: Any) -> bytes:
    """Return the envelope that a run has on its own."""
    controls = CallEnvelopes().controls_of(wish)
    assert controls is not None
    definition, of_input, of_output = known.tool.digests
    subject = Subject(
        "t",
        f"sha256:{(definition or '')[:12]}",
        arguments=known.arguments,
        request_id=wish.request_id,
        definition_digest=definition,
        input_schema_digest=of_input,
        output_schema_digest=of_output,
        policy_digest=known.policy_digest,
        rule=known.rule,
        rule_digest=known.digest_of_rule(known.rule),
        occasion=known.occasion,
    )
    return json_bytes(enclose(result, controls, subject, signer))


def run(
    arguments: Any, own: Tool = TOOL, rule: str = "reads are allowed", policy_digest: str = "1" * 64
) -> KnownRun:
    occasion = Occasion("r", "2026-03-01T00:00:00.000Z", 1.0)
    return KnownRun(own, arguments, policy_digest, rule, lambda name: f"{len(name):064x}", occasion)


@given(
    st.lists(
        st.tuples(
            json_values,
            st.dictionaries(text, json_values),
            st.sampled_from(["minimal", "full"]),
            st.none() | text,
            st.sampled_from([TOOL, CHANGED]),
            st.sampled_from(["reads are allowed", '\U0001f512 "run_id":""']),
            st.sampled_from(["1" * 64, "2" * 64]),
            st.booleans(),
        ),
        min_size=2,
        max_size=6,
    ),
    st.sampled_from([None, KEY]),
)
def test_the_envelope_of_one_call_says_nothing_of_another(runs: list[Any], signer: Any) -> None:
    # Records of a tool's runs share their form: whatever came before, each is as if it were alone.
    envelopes = CallEnvelopes(signer=signer)
    for result, arguments, mode, request_id, own, rule, policy_digest, deterministic in runs:
        wish = EnvelopeRequest(
            {"capture_provenance": True, "provenance_mode": mode},
            {"deterministic": deterministic},
            request_id=request_id,
        )
        controls = envelopes.controls_of(wish)
        assert controls is not None
        known = run(arguments, own, rule, policy_digest)
        made = json_bytes(envelopes.enclose(result, controls, wish, known))
        assert made == enclosed_anew(result, wish, known, signer)


def test_a_result_that_is_an_envelope_is_not_put_into_another() -> None:
    envelopes, wish = CallEnvelopes(), EnvelopeRequest(RECORD)
    controls = envelopes.controls_of(wish)
    assert controls is not None
    known = run({"a": 1})
    made = envelopes.enclose({"a": 1}, controls, wish, known)
    assert envelopes.enclose(made, controls, wish, known) is made


def test_a_failed_or_redacted_call_has_what_others_of_its_tool_do_not_have() -> None:
    envelopes, wish = CallEnvelopes(), EnvelopeRequest(RECORD)
    controls = envelopes.controls_of(wish)
    assert controls is not None
    known = run({"a": 1})
    assert "errors" not in envelopes.enclose({"a": 1}, controls, wish, known)
    failed: Any = envelopes.enclose(Failed(Reason.TOOL_FAILED), controls, wish, known)
    assert failed["result"] is None
    assert len(failed["errors"]) == 1
    redacted: Any = envelopes.enclose({"a": 1}, controls, wish, known._replace(is_redacted=True))
    assert [warning["code"] for warning in redacted["warnings"]] == ["ADAPTER.OUTPUT.REDACTED"]
    assert "warnings" not in envelopes.enclose({"a": 1}, controls, wish, known)


def test_forms_of_tools_that_are_gone_do_not_stay_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_envelope, "_MAX_FORMS", 3)
    envelopes, wish = CallEnvelopes(), EnvelopeRequest(RECORD)
    controls = envelopes.controls_of(wish)
    assert controls is not None
    for number in [*range(5), 4]:  # a server behind us gives its tool a new name
        renamed = tool(name=f"t{number}")
        made: Any = envelopes.enclose({"a": 1}, controls, wish, run({}, renamed))
        assert made["provenance"]["tool"]["name"] == f"t{number}"
    kept = envelopes._forms  # pyright: ignore[reportPrivateUsage]
    assert [name for _, name, *_ in kept] == ["t2", "t3", "t4"]


def test_a_tool_and_a_prompt_of_one_name_do_not_share_a_form() -> None:
    envelopes, wish = CallEnvelopes(), EnvelopeRequest(RECORD)
    controls = envelopes.controls_of(wish)
    assert controls is not None
    prompt = replace(TOOL, spec=replace(TOOL.spec, kind="prompt"))
    for own in (TOOL, prompt, TOOL, prompt):
        envelopes.enclose({"a": 1}, controls, wish, run({}, own))
    kept = envelopes._forms  # pyright: ignore[reportPrivateUsage]
    assert {kind: made_for for (kind, *_), (made_for, _) in kept.items()} == {"tool": TOOL, "prompt": prompt}
