"""How many tools, resources and prompts are served, in words. Pure: no I/O."""

from __future__ import annotations

from portbook.tools.catalog import Catalog

__all__ = ["served_counts"]


def served_counts(catalog: Catalog) -> str:
    """Return how many of each kind are served; `0 tools` if there is nothing."""
    kinds = ("tool", "resource", "prompt")
    counts = [(kind, sum(spec.kind == kind for spec in catalog.specs())) for kind in kinds]
    shown = [each for each in counts if each[1]] or counts[:1]
    return ", ".join(f"1 {kind}" if count == 1 else f"{count} {kind}s" for kind, count in shown)
