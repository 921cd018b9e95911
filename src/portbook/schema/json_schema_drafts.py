"""The dialects of JSON Schema that are supported. Pure: no I/O."""

from __future__ import annotations

from typing import Any, Final, cast

from portbook.errors import Finding
from portbook.schema.violation_wording import escape_pointer

__all__ = ["DIALECT", "DRAFT_07", "META_SCHEMAS", "Path", "check_dialect", "dialect_of"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# The dialect of MCP's own schemas up to revision 2025-06-18, and of tools of many MCP servers. The operator's
# own tools are never in it.
DRAFT_07: Final = "http://json-schema.org/draft-07/schema#"
META_SCHEMAS: Final = frozenset(
    {DIALECT}
    | {
        f"https://json-schema.org/draft/2020-12/meta/{vocabulary}"
        for vocabulary in (
            "core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "content",
        )
    }
)  # fmt: skip

# What a person does with a schema of draft-07; most need no more than the first.
_FROM_DRAFT_07: Final = (
    "rename definitions to $defs, items with a list to prefixItems, additionalItems to items, "
    "and dependencies to dependentRequired or dependentSchemas"
)

Path = tuple[str | int, ...]


def dialect_of(schema: Any) -> str:
    """Return the dialect of `schema`: draft-07 where it names that, otherwise 2020-12."""
    named = cast("dict[str, Any]", schema).get("$schema") if isinstance(schema, dict) else None
    is_old = isinstance(named, str) and named.removesuffix("#") == DRAFT_07.removesuffix("#")
    return DRAFT_07 if is_old else DIALECT


def check_dialect(schema: Any, path: Path = (), dialect: str = DIALECT) -> list[Finding]:
    """Return the findings about the `$schema` of `schema`; a nested schema may also have one."""
    named = cast("dict[str, Any]", schema).get("$schema", dialect) if isinstance(schema, dict) else dialect
    if named in (dialect, dialect.removesuffix("#"), dialect.removesuffix("#") + "#"):
        return []
    message = f"must be {dialect}, the only supported dialect"
    if named in (DRAFT_07, DRAFT_07.removesuffix("#")):
        message += f"; {_FROM_DRAFT_07}"
    elif dialect == DIALECT:
        message += " beside draft-07, which the tools of MCP servers may have"
    return [Finding(escape_pointer((*path, "$schema")), message, "$schema", "")]
