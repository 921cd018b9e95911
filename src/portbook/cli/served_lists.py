"""What clients see of the lists of tools, resources and prompts: which of them a reload has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from portbook.canonical import fingerprint
from portbook.model import Kind
from portbook.tools.catalog import Catalog

__all__ = ["LISTED", "changed_lists", "served_lists"]

LISTED: Final[tuple[Kind, ...]] = ("tool", "resource", "prompt")


def served_lists(catalog: Catalog) -> dict[Kind, str]:
    """Return the digest of each list."""
    return {kind: fingerprint([[tool.listed, tool.digest] for tool in catalog.of(kind)]) for kind in LISTED}


def changed_lists(old: Mapping[Kind, str], new: Mapping[Kind, str]) -> list[Kind]:
    """Return the kinds whose lists differ."""
    return [kind for kind in LISTED if old.get(kind) != new.get(kind)]
