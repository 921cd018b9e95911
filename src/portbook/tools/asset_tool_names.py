"""The names of the asset tools. Light: a server knows them even where it serves none of them."""

from __future__ import annotations

from typing import Final

__all__ = ["ASSET_TOOLS"]

ASSET_TOOLS: Final = frozenset(
    {
        "diff_assets",
        "get_example",
        "get_schema",
        "list_examples",
        "list_schemas",
        "populate_backend",
        "validate_asset",
        "validate_many",
    }
)
