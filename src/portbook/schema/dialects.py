"""The dialects of JSON Schema that are supported. Pure: no I/O."""

from __future__ import annotations

from typing import Any, Final, cast

from portbook.errors import Finding
from portbook.schema.messages import escape_pointer

__all__ = ["DIALECT", "DRAFT_07", "META_SCHEMAS", "Path", "check_dialect"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# The dialect of MCP's own schemas up to revision 2025-06-18; a tool's schema is never in it.
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

Path = tuple[str | int, ...]


def check_dialect(schema: Any, path: Path = (), dialect: str = DIALECT) -> list[Finding]:
    """Return the findings about the `$schema` of `schema`; a nested schema may also have one."""
    named = cast("dict[str, Any]", schema).get("$schema", dialect) if isinstance(schema, dict) else dialect
    if named in (dialect, dialect.removesuffix("#"), dialect.removesuffix("#") + "#"):
        return []
    message = f"must be {dialect}, the only supported dialect"
    return [Finding(escape_pointer((*path, "$schema")), message, "$schema", "")]
