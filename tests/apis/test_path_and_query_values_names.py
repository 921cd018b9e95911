"""Names in a query: which of them mean the same to somebody."""

from __future__ import annotations

import pytest

from portbook.apis.path_and_query_values import TakenNames


@pytest.mark.parametrize(
    ("query", "name", "expected"),
    [
        ("", "tenant", False),
        ("tenant=acme", "tenant", True),
        ("tenant", "tenant", True),
        ("a=1;tenant=acme", "tenant", True),
        ("%74enant=acme", "tenant", True),
        ("tenant+id=acme", "tenant id", True),
        ("tenant=acme", "TENANT", True),
        ("tenant=acme", "tenant ", True),
        ("tenant=acme", "tenant[]", True),
        ("tenant=acme", "tenant[a][b]", True),
        ("tenant=acme", "tenants", False),
        ("tenant=acme", "", False),
        ("tenant[]=acme", "tenant", True),
        ("a[b]=1", "a[b]", True),
        ("a[b]=1", "a[b][c]", True),
        ("a[b][c]=1", "a[b]", True),
        ("a%5Bb%5D=1", "a[b]", True),
        ("a[b]=1", "a[c]", False),
        ("a[b]=1", "b", False),
        ("tenant.id=1", "tenant_id", True),
        ("tenant_id=1", "tenant.id", True),
        ("tenant_id=1", "tenant id", True),
        ("tenant_id=1", " tenant.id", True),
        ("tenant_=1", "tenant ", True),
        ("tenant_=1", " tenant [x]", True),
        ("tenant_=1", "tenant", False),
        ("tenant_id=1", "tenant[id", True),
        ("tenant_id_x=1", "tenant[id.x", True),
        ("tenant_id_x=1", "tenant[id[x", True),
        ("tenant=1", "tenant[id", True),
        ("tenant[id]=1", "tenant[id", True),
        ("tenant=1", "tenant[", True),
        ("tenant=1", "tenant]", True),
        ("tenant=1", "[tenant]", True),
        ("tenant=1", "]tenant", True),
        ("tenant[id]=1", "tenant[id]junk", True),
        ("tenant[id]=1", "tenant[ id]", True),
        ("tenant=1", "tenant\0x", True),
        ("tenant=1", "te\0nant", True),
        ("tenant=1", "\0", False),
        ("tenant=1", "[]", False),
        ("tenant_id=1", "tenant", False),
        ("tenant=1", "tenant.id", False),
    ],
)
def test_a_name_is_fixed_if_some_server_would_take_it_for_one_that_is(
    query: str, name: str, expected: bool
) -> None:
    assert TakenNames(query, ()).is_fixed(name) is expected


def test_a_parameters_name_is_its_own_and_nobody_elses() -> None:
    taken = TakenNames("", [("a", "x"), ("a[b]", "y"), ("c", "x"), ("c", "z")])
    assert not taken.is_of_other_argument("d", "w")
    assert taken.is_of_other_argument("a", "w")
    assert taken.is_of_other_argument("a[b]", "x")
    assert not taken.is_of_other_argument("a[c]", "x")
    assert taken.is_of_other_argument("c", "x")
    assert not taken.is_fixed("a")
