"""`mcp.request.v0.1`: what is read from it, and what is said of one that is broken."""

from __future__ import annotations

from typing import Any

import pytest

from portbook import Controls, SchemaRegistry
from portbook.envelope.request_for_envelope import is_request, read_request
from portbook.errors import Reason, Refused
from portbook.provenance.artifacts import Artifact

SCHEMA = SchemaRegistry().load("mcp.request.v0.1")
REQUEST: Any = {
    "schema_version": "mcp.request.v0.1",
    "request_id": "req-001",
    "tool": {"name": "mcp.tool:docs.search", "version": "v1"},
    "params": {"query": "x", "_meta": {"capture_provenance": True, "parents": ["run-0"]}},
    "artifacts": [{"locator": "file:a"}, {"artifact_id": "b", "media_type": "text/plain"}],
    "preferences": {"deterministic": False, "max_output_bytes": 1e3, "locale": "de"},
}


def test_a_request_is_read() -> None:
    read = read_request(REQUEST, SCHEMA)
    assert (read.tool, read.version, read.request_id, read.locale) == ("docs.search", "v1", "req-001", "de")
    assert read.arguments == {"query": "x"}
    assert read.controls == Controls(True, parents=("run-0",), deterministic=False, max_output_bytes=1000)
    assert read.artifacts == (
        Artifact("artifact.0", "application/octet-stream", "file:a"),
        Artifact("b", "text/plain"),
    )


def test_the_least_request_asks_for_an_envelope_and_prefers_determinism() -> None:
    least = {"schema_version": "mcp.request.v0.1", "tool": {"name": "t"}, "params": {}, "artifacts": []}
    for default in ("off", "wrap"):
        read = read_request(least, SCHEMA, default=default)  # type: ignore[arg-type]
        assert read.controls == Controls(is_wanted=True, deterministic=True)
        assert (read.tool, read.version, read.arguments, read.artifacts) == ("t", None, {}, ())
    assert read_request(least, SCHEMA, default="provenance").controls.capture_provenance


def test_no_params_are_no_arguments() -> None:
    assert read_request({**REQUEST, "params": None}, SCHEMA).arguments == {}


@pytest.mark.parametrize("params", ["x", [], 5, True])
def test_params_that_are_no_object_are_no_arguments(params: Any) -> None:
    with pytest.raises(Refused) as raised:
        read_request({**REQUEST, "params": params}, SCHEMA, at="/params")
    [finding] = raised.value.findings
    assert (raised.value.reason, finding.pointer) == (Reason.BAD_PARAMS, "/params/params")


@pytest.mark.parametrize(
    ("broken", "pointer"),
    [
        ({**REQUEST, "extra": 1}, "/params"),
        ({**REQUEST, "tool": {}}, "/params/tool"),
        ({**REQUEST, "artifacts": [{}]}, "/params/artifacts/0"),
        ({**REQUEST, "preferences": {"deterministic": 1}}, "/params/preferences/deterministic"),
        ([], "/params"),
    ],
)
def test_a_broken_request_is_refused_with_the_place(broken: Any, pointer: str) -> None:
    with pytest.raises(Refused) as raised:
        read_request(broken, SCHEMA, at="/params")
    assert raised.value.reason is Reason.BAD_PARAMS
    assert [finding.pointer for finding in raised.value.findings] == [pointer]


def test_a_wrong_control_is_a_warning_and_no_refusal() -> None:
    read = read_request({**REQUEST, "params": {"_meta": {"capture_provenance": "yes"}}}, SCHEMA)
    assert len(read.controls.warnings) == 1


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(REQUEST, True), ({"schema_version": "mcp.request.v0.1"}, True), ({"tool": {}}, False), ([], False)],
)
def test_what_says_that_it_is_a_request_is_meant_as_one(value: Any, verdict: bool) -> None:
    assert is_request(value) is verdict
