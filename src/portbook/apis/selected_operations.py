"""`ImportSelection`: which operations of a gateway's documents become tools.

`include`, `exclude` and `effects` have patterns of names, or of methods and paths: one with a space, such as
`GET /orders/*`, is of these. `tags` has patterns of tags. A pattern that matches nothing is a likely
mistake, and is told with its line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from portbook.apis.openapi.operations_and_names import (
    ImportedOperation,
    OperationHead,
)
from portbook.apis.table_reader import Table
from portbook.globs import is_pattern, matches
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.spec import Effect

__all__ = ["ImportSelection", "missing_operation"]

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
        is_included = any(_is_meant(pattern, head) for pattern in self.include)
        if not is_included or any(_is_meant(pattern, head) for pattern in self.exclude):
            return False
        if head.is_deprecated and self.deprecated == "leave-out":
            return False
        return self.tags is None or head.tags is None or any(matches(self.tags, tag) for tag in head.tags)

    def effect_of(self, operation: OperationHead | ImportedOperation) -> Effect | None:
        """Return the effect that the operator set for an operation, if so."""
        return next((effect for each, effect in self.effects.items() if _is_meant(each, operation)), None)

    def doubts(self, table: Table, heads: Sequence[OperationHead]) -> Iterator[str]:
        """Yield a warning for each pattern that matches none of the documents' operations or tags.

        Raises the table's exception for a name without a wildcard that the documents do not have.
        """
        include = self.include if "include" in table else ()  # a warning names what the operator wrote
        patterns = (("include", include), ("exclude", self.exclude), ("effects", tuple(self.effects)))
        wanted = {head for head in heads if self.wants(head)}
        for key, given in patterns:
            yield from _vain_patterns(table, key, given, heads)
            if key != "exclude":
                yield from _unwanted(table, key, given, heads, wanted)
        yield from _vain_tags(table, self.tags or (), heads)


def _is_meant(pattern: str, operation: OperationHead | ImportedOperation) -> bool:
    """Return whether a pattern matches an operation's name, or its method and path."""
    if " " in pattern:  # no name has a space
        return any(matches((pattern,), place) for place in operation.places)
    return matches((pattern,), operation.name)


def _vain_patterns(
    table: Table, key: str, patterns: tuple[str, ...], heads: Sequence[OperationHead]
) -> Iterator[str]:
    for at, pattern in enumerate(patterns):
        matched = [head for head in heads if _is_meant(pattern, head)]
        if not matched and not is_pattern(pattern):
            raise table.wrong(key, missing_operation(pattern, heads))
        if not matched:
            yield str(table.wrong(key, f"has {pattern[:80]!r}, which matches no operation of the document"))
        elif key == "effects" and all(
            any(_is_meant(before, head) for before in patterns[:at]) for head in matched
        ):
            same = f"has {pattern[:80]!r} after patterns that match the same; put it first"
            yield str(table.wrong(key, same))


def missing_operation(name: str, operations: Sequence[OperationHead | ImportedOperation]) -> str:
    """Return the sentence on a name that no operation has, or that none of them has alone."""
    renamed = next((each for each in operations if each.own_name == name), None)
    if renamed is not None:
        return (
            f"names {name[:80]!r}, which is not the name of a tool: it is shared or too long; "
            f"write {renamed.name!r}, or {renamed.places[0]!r}"
        )
    by_place = [place for each in operations for place in each.places]
    known = by_place if " " in name else [each.name for each in operations]
    hint = did_you_mean(name, known, "use the operations that it has")
    return f"names {name[:80]!r}, and the document has no such operation; {hint}"


def _vain_tags(table: Table, patterns: tuple[str, ...], heads: Sequence[OperationHead]) -> Iterator[str]:
    tags = sorted({tag for head in heads for tag in head.tags or ()})
    for pattern in patterns:
        if any(matches((pattern,), tag) for tag in tags):
            continue
        if not is_pattern(pattern):
            hint = did_you_mean(pattern, tags, "use the tags that it has")
            raise table.wrong("tags", f"names {pattern[:80]!r}, and the document has no such tag; {hint}")
        yield str(table.wrong("tags", f"has {pattern[:80]!r}, which matches no tag of the document"))


def _unwanted(
    table: Table,
    key: str,
    patterns: tuple[str, ...],
    heads: Sequence[OperationHead],
    wanted: Collection[OperationHead],
) -> Iterator[str]:
    """Yield the patterns for operations that the operator leaves out himself."""
    for pattern in patterns:
        matched = [head for head in heads if _is_meant(pattern, head)]
        if matched and not any(head in wanted for head in matched):
            left_out = "is left out by include, exclude, tags or deprecated"
            yield str(table.wrong(key, f"has {pattern[:80]!r}, and what it matches {left_out}"))


def _effects(table: Table) -> dict[str, Effect]:
    if "effects" not in table:
        return {}
    given = table.table("effects")
    return {pattern: Effect(given.choice(pattern, Effect) or Effect.WRITE) for pattern in given}
