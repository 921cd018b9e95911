"""What clients see of the lists of tools, resources and prompts: which of them a reload has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from portbook.canonical import fingerprint
from portbook.model import Kind
from portbook.tools.catalog import Catalog

__all__ = ["LISTED", "changed_lists", "served_counts", "served_lists"]

LISTED: Final[tuple[Kind, ...]] = ("tool", "resource", "prompt")


def served_lists(catalog: Catalog) -> dict[Kind, str]:
    """Return the digest of each list."""
    return {kind: fingerprint([[tool.listed, tool.digest] for tool in catalog.of(kind)]) for kind in LISTED}


def changed_lists(old: Mapping[Kind, str], new: Mapping[Kind, str]) -> list[Kind]:
    """Return the kinds whose lists differ."""
    return [kind for kind in LISTED if old.get(kind) != new.get(kind)]


# How many tools, resources and prompts are served, in words.


def served_counts(catalog: Catalog) -> str:
    """Return how many of each kind are served; `0 tools` if there is nothing."""
    kinds = ("tool", "resource", "prompt")
    counts = [(kind, sum(spec.kind == kind for spec in catalog.specs())) for kind in kinds]
    shown = [each for each in counts if each[1]] or counts[:1]
    return ", ".join(f"1 {kind}" if count == 1 else f"{count} {kind}s" for kind, count in shown)
