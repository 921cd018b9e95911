"""`GET /operator/openapi.json`: valid, and about every route that operators have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from portbook.doors.http.route_table import route_table
from portbook.schema.engine import validator_for
from support.mcp_http_client import run, serving
from support.operator_console import Console


def test_the_document_is_valid_and_needs_the_operators_key(console: Console) -> None:
    status, document = console.ask("/operator/openapi.json")
    assert status == 200
    assert [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(document)] == []
    assert console.ask("/operator/openapi.json", key=None)[0] == 401


@pytest.mark.covers("design.operator.openapi")
def test_every_operator_route_is_described_and_nothing_else(console: Console, tmp_path: Path) -> None:
    described: Any = console.ask("/operator/openapi.json")[1]["paths"]
    found = {(method.upper(), path.partition("{")[0]) for path, item in described.items() for method in item}

    served: set[tuple[str, str]] = set()

    async def main() -> None:
        async with serving(tmp_path) as client:
            served.update(
                (method, path.partition("{")[0])
                for method, path in route_table(client.served)
                if path.startswith(("/operator/", "/approvals")) and method != "HEAD"
            )

    run(main())
    assert found == served - {("GET", "/operator/openapi.json")}


def test_an_example_is_what_its_schema_allows(console: Console) -> None:
    described: Any = console.ask("/operator/openapi.json")[1]["paths"]
    bodies = [
        operation["requestBody"]["content"]["application/json"]
        for item in described.values()
        for operation in item.values()
        if "requestBody" in operation
    ]
    assert len(bodies) == 5
    for body in bodies:
        assert validator_for(body["schema"]).allows(body["example"])
