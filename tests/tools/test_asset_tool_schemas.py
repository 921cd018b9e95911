"""The contracts of the asset tools: one for each, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.assets.asset_tools_and_resources import asset_tools
from portbook.assets.library import EMPTY
from portbook.schema.engine import validator_for
from portbook.tools.asset_tool_schemas import INPUTS, OUTPUTS
from portbook.tools.catalog import Catalog
from portbook.tools.spec import Effect
from portbook.tools.tool_names import ASSET_TOOLS


def test_every_contract_has_its_tool_and_only_sending_has_an_effect() -> None:
    specs = asset_tools(EMPTY, None, 100)
    assert {spec.name for spec in specs} == set(INPUTS) == set(OUTPUTS) == ASSET_TOOLS
    assert {spec.name for spec in specs if spec.effect is not Effect.READ} == {"populate_backend"}
    assert len(Catalog(specs)) == len(specs)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("validate_asset", {"asset": {}}),
        ("validate_asset", {"schema": "tone"}),
        ("validate_asset", {"asset": {}, "schema": 5}),
        ("validate_many", {"assets": {}, "schema": "tone"}),
        ("get_schema", {}),
        ("get_example", {"path": 5}),
        ("diff_assets", {"base": {}}),
        ("populate_backend", {"asset": {}, "validate_first": "no"}),
    ],
)
def test_arguments_that_a_contract_does_not_allow_are_refused(name: str, given: dict[str, Any]) -> None:
    assert not validator_for(INPUTS[name]).is_valid(given)
