"""What the keywords of JSON Schema have in common, for proofs about them. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.assets.compat.equivalence import LABELS

__all__ = ["ABOUT", "OPAQUE", "SILENT", "WHOLE"]

# Keywords without a meaning of their own: labels, and keywords that belong to a different one. A member that
# is in none of these tables is not a keyword of the dialect, and has no meaning.
SILENT: Final = LABELS | {"allOf", "then", "else", "minContains", "maxContains", "contentSchema"}

# Keywords that must be equal in both schemas, each with the keywords that belong to it.
OPAQUE: Final = {
    "not": ("not",),
    "oneOf": ("oneOf",),
    "if": ("if", "then", "else"),
    "contains": ("contains", "minContains", "maxContains"),
    "dependentSchemas": ("dependentSchemas",),
    "dependentRequired": ("dependentRequired",),
    "dependencies": ("dependencies",),
    "propertyNames": ("propertyNames",),
    "contentEncoding": ("contentEncoding", "contentMediaType", "contentSchema"),
    "contentMediaType": ("contentEncoding", "contentMediaType", "contentSchema"),
    "pattern": ("pattern",),
    "format": ("format",),
}

# Keywords that depend on those beside them: all of them must be equal. The target of a dynamic reference
# depends on how it was reached, so with one nothing is proved.
WHOLE: Final = frozenset({"unevaluatedProperties", "unevaluatedItems", "$dynamicRef"})

# The only type that a keyword constrains.
ABOUT: Final = {
    **dict.fromkeys(
        ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"), "string"
    ),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"), "array"),
    **dict.fromkeys(
        (
            "properties", "patternProperties", "additionalProperties", "required", "minProperties",
            "maxProperties", "propertyNames", "dependentSchemas", "dependentRequired", "dependencies",
        ),
        "object",
    ),
}  # fmt: skip
