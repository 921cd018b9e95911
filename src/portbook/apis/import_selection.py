"""`ImportSelection`: which operations of a gateway's documents become tools. Pure: no I/O.

`include`, `exclude` and `effects` have patterns of names, `tags` has patterns of tags. A pattern that matches
nothing is a likely mistake, and is told with its line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from portbook.apis.openapi.operation_reader import OperationHead
from portbook.apis.table_reader import Table
from portbook.did_you_mean import did_you_mean
from portbook.globs import is_pattern, matches
from portbook.tools.spec import Effect

__all__ = ["SELECTION_KEYS", "ImportSelection"]

SELECTION_KEYS: Final = ("deprecated", "effects", "exclude", "include", "tags")

_DEPRECATED: Final = ("serve", "leave-out")


@dataclass(frozen=True, slots=True)
class ImportSelection:
    """What the operator chose of the documents of one gateway."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    tags: tuple[str, ...] | None = None
    """None where an operation is wanted whatever its tags."""
    deprecated: Literal["serve", "leave-out"] = "serve"
    effects: dict[str, Effect] = field(default_factory=dict[str, Effect])
    """The effects of tools by patterns of their names; the first that matches counts."""
    is_given: bool = False
    """Whether the operator chose at all."""

    @classmethod
    def read(cls, table: Table) -> ImportSelection:
        """Return the selection of a gateway's table.

        Raises the table's exception where a value is not valid.
        """
        deprecated = table.choice("deprecated", _DEPRECATED) or "serve"
        return cls(
            table.texts("include") or ("*",),
            table.texts("exclude") or (),
            table.texts("tags"),
            cast("Literal['serve', 'leave-out']", deprecated),
            _effects(table),
            is_given=any(key in table for key in ("include", "exclude", "tags")),
        )

    def wants(self, head: OperationHead) -> bool:
        """Return whether an operation is wanted; one whose tags are not known is, whatever `tags` has."""
        if not matches(self.include, head.name) or matches(self.exclude, head.name):
            return False
        if head.is_deprecated and self.deprecated == "leave-out":
            return False
        return self.tags is None or head.tags is None or any(matches(self.tags, tag) for tag in head.tags)

    def effect_of(self, name: str) -> Effect | None:
        """Return the effect that the operator set for an operation, if so."""
        return next((effect for pattern, effect in self.effects.items() if matches((pattern,), name)), None)

    def doubts(self, table: Table, heads: Sequence[OperationHead]) -> Iterator[str]:
        """Yield a warning for each pattern that matches none of the documents' operations or tags.

        Raises the table's exception for a name without a wildcard that the documents do not have.
        """
        names = [head.name for head in heads]
        include = self.include if "include" in table else ()  # a warning names what the operator wrote
        patterns = (("include", include), ("exclude", self.exclude), ("effects", tuple(self.effects)))
        wanted = {head.name for head in heads if self.wants(head)}
        for key, given in patterns:
            yield from _vain_patterns(table, key, given, names, "operation")
            if key != "exclude":
                yield from _unwanted(table, key, given, names, wanted)
        tags = sorted({tag for head in heads for tag in head.tags or ()})
        yield from _vain_patterns(table, "tags", self.tags or (), tags, "tag")


def _vain_patterns(
    table: Table, key: str, patterns: tuple[str, ...], names: Sequence[str], noun: str
) -> Iterator[str]:
    for at, pattern in enumerate(patterns):
        matched = [name for name in names if matches((pattern,), name)]
        shown = pattern[:80]
        if not matched and not is_pattern(pattern):
            hint = did_you_mean(pattern, names, f"use the {noun}s that it has")
            raise table.wrong(key, f"names {shown!r}, and the document has no such {noun}; {hint}")
        if not matched:
            yield str(table.wrong(key, f"has {shown!r}, which matches no {noun} of the document"))
        elif key == "effects" and all(matches(patterns[:at], name) for name in matched):
            yield str(table.wrong(key, f"has {shown!r} after patterns that match the same; put it first"))


def _unwanted(
    table: Table, key: str, patterns: tuple[str, ...], names: Sequence[str], wanted: Collection[str]
) -> Iterator[str]:
    """Yield the patterns for operations that the operator leaves out himself."""
    for pattern in patterns:
        matched = [name for name in names if matches((pattern,), name)]
        if matched and not any(name in wanted for name in matched):
            left_out = "is left out by include, exclude, tags or deprecated"
            yield str(table.wrong(key, f"has {pattern[:80]!r}, and what it matches {left_out}"))


def _effects(table: Table) -> dict[str, Effect]:
    if "effects" not in table:
        return {}
    given = table.table("effects")
    return {pattern: Effect(given.choice(pattern, Effect) or Effect.WRITE) for pattern in given}
