"""What a caller asks of an envelope, and what is said of what cannot be used."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.envelope.request_for_envelope import Controls, Default, read_controls, take_meta

OFF = Controls(is_wanted=False)


@pytest.mark.covers("003.controls.table")
@pytest.mark.parametrize(
    ("meta", "controls"),
    [
        (None, OFF),
        ({}, OFF),
        ([], OFF),
        ("capture_provenance", OFF),
        ({"traceparent": "00-…", "progressToken": 1}, OFF),
        ({"capture_provenance": False, "capture_artifacts": False, "provenance_mode": "minimal"}, OFF),
        ({"capture_provenance": True}, Controls(True)),
        ({"capture_provenance": True, "capture_artifacts": True}, Controls(True, True)),
        ({"capture_provenance": True, "provenance_mode": "full"}, Controls(True, False, "full")),
        ({"capture_provenance": True, "parents": ["b", "a", "b"]}, Controls(True, parents=("b", "a"))),
    ],
)
def test_three_controls_have_their_defaults(meta: Any, controls: Controls) -> None:
    assert read_controls(meta) == controls


@pytest.mark.parametrize(
    ("default", "meta", "is_wanted", "captures"),
    [
        ("off", {}, False, False),
        ("wrap", {}, True, False),
        ("provenance", {}, True, True),
        ("provenance", {"capture_provenance": False}, True, False),
        ("wrap", {"capture_provenance": True}, True, True),
        ("off", {"capture_provenance": True}, True, True),
        ("off", {"provenance_mode": "full"}, True, False),
        ("off", {"parents": ["run-1"]}, True, False),
        ("off", {"provenance_mode": "minimal", "parents": []}, False, False),
    ],
)
def test_the_default_is_what_callers_get_that_ask_for_nothing(
    default: Default, meta: Any, is_wanted: bool, captures: bool
) -> None:
    controls = read_controls(meta, default)
    assert (controls.is_wanted, controls.capture_provenance) == (is_wanted, captures)


@pytest.mark.covers("003.controls.wrong")
@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("capture_provenance", ["true", 1, 0, None, [], {}], "must be true or false; false is used"),
        (
            "provenance_mode",
            ["Full", "", None, True, [], {}],
            'must be "minimal" or "full"; "minimal" is used',
        ),
        ("parents", ["a", [1], [""], ["x" * 201], ["x"] * 101, {}, None], "must be at most 100 strings"),
    ],
)
def test_a_wrong_value_is_a_warning_and_asks_for_the_envelope_that_warns(
    name: str, values: list[Any], said: str
) -> None:
    for value in values:
        controls = read_controls({name: value})
        [warning] = controls.warnings
        assert warning.code == "ADAPTER.CONTROLS.IGNORED"
        assert warning.message.startswith(f"_meta/{name}: {said}")
        assert warning.details == {"control": name}
        assert controls == Controls(warnings=controls.warnings)


def test_digests_without_a_record_to_put_them_in_are_warned_of() -> None:
    [warning] = read_controls({"capture_artifacts": True}).warnings
    assert "has no effect without capture_provenance" in warning.message


def test_controls_made_by_hand_are_held_to_the_same_lengths() -> None:
    for parent in ("", "x" * 201):
        with pytest.raises(ValueError, match="parents: must have 1 to 200 characters"):
            Controls(parents=(parent,))


def test_what_was_sent_is_never_repeated() -> None:
    controls = read_controls(
        {"capture_provenance": "canary", "provenance_mode": "canary", "parents": "canary"}
    )
    assert len(controls.warnings) == 3
    assert "canary" not in repr(controls)


names = st.sampled_from(["capture_provenance", "capture_artifacts", "provenance_mode", "parents", "else"])
values = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.text(max_size=3))


@given(st.dictionaries(names, values))
def test_whatever_is_sent_is_read(meta: Any) -> None:
    controls = read_controls(meta)
    assert isinstance(controls.capture_provenance, bool)
    assert controls.provenance_mode in ("minimal", "full")


def test_meta_is_taken_out_of_the_arguments() -> None:
    params: Any = {"query": "x", "_meta": {"a": 1}}
    assert take_meta(params) == ({"query": "x"}, {"a": 1})
    assert params == {"query": "x", "_meta": {"a": 1}}
    assert take_meta({"query": "x"}) == ({"query": "x"}, None)
