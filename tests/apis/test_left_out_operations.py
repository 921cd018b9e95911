"""What is said of operations that are not served."""

from __future__ import annotations

from portbook.apis.left_out_operations import Cause, LeftOutOperation, summary_of


def left_out(cause: Cause) -> LeftOutOperation:
    return LeftOutOperation("look", "api.json", "/paths/~1a/get", "GET", cause, "Why.", ("GET /a",))


def test_the_summary_counts_by_kind_of_reason() -> None:
    several = [left_out(Cause.SERVER), left_out(Cause.REFERENCE), left_out(Cause.SERVER)]
    assert summary_of(several, 9, "api.json") == (
        "3 of 9 operations of api.json are left out: 1 with a reference that cannot be followed, "
        "2 without a server that can be called; `portbook tools --left-out` lists them"
    )
    assert summary_of(several[:1], 9, "api.json").startswith("1 of 9 operations of api.json is left out: ")


def test_as_data_it_has_its_place_and_its_reason() -> None:
    assert left_out(Cause.INVALID).as_data() == {
        "tool": "look",
        "file": "api.json",
        "pointer": "/paths/~1a/get",
        "method": "GET",
        "cause": "invalid",
        "reason": "Why.",
    }
