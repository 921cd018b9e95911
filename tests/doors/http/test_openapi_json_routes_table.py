"""The table of operator routes: one name for each, and what a person reads of it."""

from __future__ import annotations

from portbook.audit.call_index_filters_and_figures import FILTERS, call_filter
from portbook.doors.http.openapi_json_routes import OPERATIONS


def test_every_operation_has_a_name_of_its_own_and_a_sentence() -> None:
    names = [each.name for each in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(each.summary.endswith(".") for each in OPERATIONS)


def test_examples_of_filters_are_filters() -> None:
    calls = next(each for each in OPERATIONS if each.name == "listCalls")
    given = {name: example for name, example in calls.query.items() if example and name in FILTERS}
    assert calls.query.keys() >= set(FILTERS)
    assert given
    call_filter(given)
