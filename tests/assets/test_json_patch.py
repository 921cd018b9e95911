"""Patches: always the same, always valid, and exact."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.assets.json_patch import diff, diff_assets
from portbook.canonical import canonical_bytes

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
KEYS = st.sampled_from(["a", "b", "a-b", "a/b", "a~b", "~1", "", "é"]) | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def apply(base: Any, patch: list[Any]) -> Any:
    """RFC 6902, the three operations, written from its text and strict about what must exist."""
    document = copy.deepcopy(base)
    for operation in patch:
        if operation["path"] == "":
            assert operation["op"] != "remove"
            document = operation["value"]
            continue
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place = document
        for part in way:
            place = place[part]
        assert isinstance(place, dict), "no operation is about an array's item"
        assert (last in place) is (operation["op"] != "add")
        if operation["op"] == "remove":
            del place[last]
        else:
            place[last] = operation["value"]
    return document


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.covers("004.diff.operations")
@pytest.mark.parametrize(
    ("base", "new", "patch"),
    [
        case("nothing", {}, {}, []),
        case("the same in another order", {"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        case("added", {}, {"a": None}, [{"op": "add", "path": "/a", "value": None}]),
        case("removed", {"a": None}, {}, [{"op": "remove", "path": "/a"}]),
        case("replaced", {"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
        case(
            "an array is replaced whole",
            {"a": [1, 2, 3]},
            {"a": [1, 2]},
            [{"op": "replace", "path": "/a", "value": [1, 2]}],
        ),
        case("another type", {"a": {}}, {"a": []}, [{"op": "replace", "path": "/a", "value": []}]),
        case("the root", [1], {"a": 1}, [{"op": "replace", "path": "", "value": {"a": 1}}]),
        case("a scalar root", 1, 2, [{"op": "replace", "path": "", "value": 2}]),
        case("equal roots", [1], [1], []),
        case("an escaped name", {"a/b~c": 1}, {}, [{"op": "remove", "path": "/a~1b~0c"}]),
        case("an empty name", {"": 1}, {}, [{"op": "remove", "path": "/"}]),
        case(
            "one is not one point zero", {"a": 1}, {"a": 1.0}, [{"op": "replace", "path": "/a", "value": 1.0}]
        ),
        case("one is not true", {"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        case(
            "nor inside of an array",
            {"a": [1]},
            {"a": [1.0]},
            [{"op": "replace", "path": "/a", "value": [1.0]}],
        ),
        case(
            "nor further down",
            {"a": {"b": {"c": {"d": 0}}}},
            {"a": {"b": {"c": {"d": False}}}},
            [{"op": "replace", "path": "/a/b/c/d", "value": False}],
        ),
        case("zero has a sign", {"a": 0.0}, {"a": -0.0}, [{"op": "replace", "path": "/a", "value": -0.0}]),
        case(
            "large integers are exact",
            {"a": [2**64]},
            {"a": [2**64 + 1]},
            [{"op": "replace", "path": "/a", "value": [2**64 + 1]}],
        ),
    ],
)
def test_a_patch_says_what_is_different_and_nothing_else(base: Any, new: Any, patch: list[Any]) -> None:
    found = diff(base, new)
    assert canonical_bytes(found) == canonical_bytes(patch)
    assert canonical_bytes(apply(base, found)) == canonical_bytes(new)


@pytest.mark.covers("004.diff.order")
def test_operations_are_ordered_by_path_whatever_the_order_of_the_members() -> None:
    base = {"b": 1, "a": {"x": 1, "z": 1}, "a-b": 1}
    new = {"c": 1, "a": {"y": 1, "z": 2}, "a-b": 2}
    assert [(operation["op"], operation["path"]) for operation in diff(base, new)] == [
        ("replace", "/a-b"),
        ("remove", "/a/x"),
        ("add", "/a/y"),
        ("replace", "/a/z"),
        ("remove", "/b"),
        ("add", "/c"),
    ]
    turned = dict(reversed(base.items())), dict(reversed(new.items()))
    assert canonical_bytes(diff(*turned)) == canonical_bytes(diff(base, new))


def test_members_of_an_operation_stand_in_the_contracts_order() -> None:
    result = diff_assets({"a": 1}, {"b": 1})
    assert canonical_bytes(result) != b""
    assert list(result) == ["ok", "patch"]
    assert [list(operation) for operation in diff({"a": 1}, {"b": 1})] == [
        ["op", "path"],
        ["op", "path", "value"],
    ]


@given(VALUES, VALUES)
def test_applying_a_patch_to_its_base_gives_the_other_document_exactly(base: Any, new: Any) -> None:
    patch = diff(base, new)
    assert canonical_bytes(apply(base, patch)) == canonical_bytes(new)
    assert [operation["path"] for operation in patch] == sorted(operation["path"] for operation in patch)
    assert {operation["op"] for operation in patch} <= {"add", "remove", "replace"}


@given(VALUES)
def test_a_document_and_its_copy_differ_in_nothing(value: Any) -> None:
    assert diff(value, copy.deepcopy(value)) == []


def test_a_deep_document_is_compared_to_its_end() -> None:
    def nested(leaf: Any) -> Any:
        for _ in range(200):
            leaf = {"a": leaf}
        return leaf

    assert diff(nested(1), nested(2)) == [{"op": "replace", "path": "/a" * 200, "value": 2}]


def nested_in_long_names(leaf: Any) -> Any:
    for _ in range(100):
        leaf = {"k" * 2400: leaf}
    return leaf


@pytest.mark.parametrize(
    ("base", "new"),
    [
        ({str(at): 0 for at in range(4_000)}, {str(at): 1 for at in range(4_000)}),
        ({str(at): 0 for at in range(4_000)}, {}),
        ({}, {str(at): {} for at in range(4_000)}),
        ({str(at): {"a": 0} for at in range(4_000)}, {str(at): {"a": 1} for at in range(4_000)}),
        ({str(at): {"a": {}} for at in range(4_000)}, {str(at): {"a": {}} for at in range(4_000)} | {"b": 1}),
    ],
    ids=["replaced", "removed", "added", "one level below", "hardly anything"],
)
def test_a_patch_is_never_longer_than_a_few_times_what_was_compared(base: Any, new: Any) -> None:
    base, new = nested_in_long_names(base), nested_in_long_names(new)
    patch = diff(base, new)
    assert len(canonical_bytes(patch)) < 6 * len(canonical_bytes([base, new]))
    assert canonical_bytes(apply(base, patch)) == canonical_bytes(new)
    assert patch == diff(copy.deepcopy(base), copy.deepcopy(new))


def test_only_the_object_with_too_many_operations_is_replaced_whole() -> None:
    def document(value: int) -> Any:
        crowd = {str(at): value for at in range(4_000)}
        return {"near": {"a": value, "b": 0}, "far": {"k" * 500: {"crowd": crowd}}}

    patch = diff(document(0), document(1))
    assert [(operation["op"], operation["path"][-6:]) for operation in patch] == [
        ("replace", "/crowd"),
        ("replace", "near/a"),
    ]


def test_an_ordinary_document_is_compared_member_by_member_however_large() -> None:
    def document(value: float) -> Any:
        return {
            f"layer-{layer}": {
                f"rule-{rule}": {"mapping": {"frequency": value, "amplitude": value + 1}, "note": "x"}
                for rule in range(50)
            }
            for layer in range(100)
        }

    assert len(diff(document(0.5), document(1.5))) == 100 * 50 * 2
