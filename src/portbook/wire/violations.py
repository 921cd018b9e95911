"""Violations in the form of an answer: where, which rule, and what to do. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.errors import Ending, Finding

__all__ = ["violations", "violations_of"]

# A longer list would not help, and would let a small message cause a large answer.
_MAX_VIOLATIONS: Final = 20


def violations(ending: Ending) -> list[dict[str, str]]:
    """Return the findings of an ending in the form of an answer, at most `_MAX_VIOLATIONS`."""
    return violations_of(ending.findings)


def violations_of(findings: tuple[Finding, ...]) -> list[dict[str, str]]:
    """Return findings in the form of an answer, at most `_MAX_VIOLATIONS`."""
    return [
        {
            "pointer": finding.pointer,
            "schema_pointer": finding.schema_pointer,
            "keyword": finding.keyword,
            "message": finding.message,
        }
        for finding in findings[:_MAX_VIOLATIONS]
    ]
