"""Which operations of a document are wanted, and patterns that choose nothing."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.apis.openapi.operations_and_names import OperationHead
from portbook.apis.selected_operations import ImportSelection
from portbook.apis.table_reader import Table
from portbook.tools.spec import Effect

HEADS = [
    OperationHead("get_order", ("orders", "read only"), places=("GET /orders/{id}",)),
    OperationHead("list_orders", ("orders",), places=("GET /orders",)),
    OperationHead("refund", ("payments",), is_deprecated=True, places=("POST /refunds",), own_name="re"),
    OperationHead("ping", ()),
    OperationHead("broken"),
]


class Complaint(Exception):
    pass


def complain(path: tuple[str | int, ...], sentence: str) -> Exception:
    return Complaint(f"{'.'.join(map(str, path))} {sentence}")


def table(given: dict[str, Any]) -> Table:
    return Table(given, ("http", "x"), complain)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, "get_order list_orders refund ping broken"),
        ({"include": ["*_order*"]}, "get_order list_orders"),
        ({"include": ["*_order*"], "exclude": ["list_*"]}, "get_order"),
        ({"tags": ["orders"]}, "get_order list_orders broken"),
        ({"tags": ["pay*", "read ?nly"]}, "get_order refund broken"),
        ({"tags": ["*"]}, "get_order list_orders refund broken"),
        ({"tags": []}, "broken"),
        ({"tags": ["orders"], "include": ["get_*"]}, "get_order"),
        ({"include": ["GET /orders/{id}"]}, "get_order"),
        ({"include": ["* /orders*", "ping"]}, "get_order list_orders ping"),
        ({"exclude": ["GET *", "*orders*"]}, "refund ping broken"),
        ({"deprecated": "leave-out"}, "get_order list_orders ping broken"),
        ({"deprecated": "serve", "tags": ["payments"]}, "refund broken"),
    ],
    ids=str,
)
def test_names_tags_and_deprecation_choose_what_is_wanted(given: dict[str, Any], wanted: str) -> None:
    selection = ImportSelection.read(table(given))
    assert [head.name for head in HEADS if selection.wants(head)] == wanted.split()


def test_the_first_pattern_of_effects_counts() -> None:
    patterns = {"GET /orders": "read", "get_*": "write", "*": "destructive"}
    selection = ImportSelection.read(table({"effects": patterns}))
    assert [selection.effect_of(head) for head in HEADS[:3]] == [
        Effect.WRITE,
        Effect.READ,
        Effect.DESTRUCTIVE,
    ]
    assert ImportSelection().effect_of(HEADS[0]) is None


@pytest.mark.parametrize(
    ("given", "is_given"),
    [({}, False), ({"effects": {"*": "read"}}, False), ({"deprecated": "serve"}, False)]
    + [({key: ["*"]}, True) for key in ("include", "exclude", "tags")],
    ids=str,
)
def test_it_is_known_whether_the_operator_chose(given: dict[str, Any], is_given: bool) -> None:
    assert ImportSelection.read(table(given)).is_given is is_given


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"tags": ["ordres"]},
            "http.x.tags names 'ordres', and the document has no such tag; did you mean",
        ),
        (
            {"tags": ["zzz"]},
            "http.x.tags names 'zzz', and the document has no such tag; use the tags",
        ),
        (
            {"include": ["get_orders"]},
            "http.x.include names 'get_orders', and the document has no such",
        ),
        (
            {"exclude": ["GET /order"]},
            "http.x.exclude names 'GET /order', and the document has no such operation; did you mean GET /",
        ),
        (
            {"effects": {"re": "read"}},
            "http.x.effects names 're', which is not the name of a tool: it is shared or too long; write",
        ),
        ({"deprecated": "hide"}, "http.x.deprecated must be one of serve, leave-out"),
        ({"tags": "orders"}, "http.x.tags must be a list of strings"),
    ],
    ids=str,
)
def test_a_name_that_the_document_does_not_have_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(Complaint) as caught:
        list(ImportSelection.read(table(given)).doubts(table(given), HEADS))
    assert str(caught.value).startswith(words)


def test_a_pattern_that_matches_nothing_is_a_warning() -> None:
    given = {"tags": ["z*", "orders"], "exclude": ["y*"], "effects": {"*": "read", "get_*": "write"}}
    assert list(ImportSelection.read(table(given)).doubts(table(given), HEADS)) == [
        "http.x.exclude has 'y*', which matches no operation of the document",
        "http.x.effects has 'get_*' after patterns that match the same; put it first",
        "http.x.tags has 'z*', which matches no tag of the document",
    ]
