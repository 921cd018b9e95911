"""Random schemas and values for properties: small, so that they meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "ab", "c/d", "~"])
PLAIN_PATTERNS = st.sampled_from(["^a", "b$", "a+b?", "^$", "[0-9]", "."])
SMALL = st.integers(0, 3)
LIMITS = st.integers(-3, 3) | st.sampled_from([0.5, -1.5, 2.0])


def values(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=6,
    )


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-4, 4)
    | st.sampled_from([0.5, 1.0, -1.5])
    | st.text("ab0", max_size=3)
)
VALUES = values(LEAVES)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    one, some = inner, st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, inner, max_size=3)
    names = st.lists(NAMES, max_size=2, unique=True)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "const": VALUES,
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], LIMITS),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
        **dict.fromkeys(["minLength", "maxLength", "minItems", "maxItems"], SMALL),
        **dict.fromkeys(["minProperties", "maxProperties"], SMALL),
        "pattern": PLAIN_PATTERNS,
        "uniqueItems": st.booleans(),
        "items": one, "contains": one, "prefixItems": some,
        **dict.fromkeys(["minContains", "maxContains"], SMALL),
        "properties": named, "additionalProperties": one, "propertyNames": one,
        "patternProperties": st.dictionaries(PLAIN_PATTERNS, inner, max_size=2),
        "required": names,
        "dependentRequired": st.dictionaries(NAMES, names, max_size=2),
        "dependentSchemas": named,
        **dict.fromkeys(["allOf", "anyOf", "oneOf"], some),
        **dict.fromkeys(["not", "if", "then", "else"], one),
    }  # fmt: skip
    return st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({keyword: keywords[keyword] for keyword in chosen})
    )


SCHEMAS = st.recursive(st.booleans() | schemas(st.booleans()), schemas, max_leaves=6)
