"""The three names of a tool: declared, canonical and listed. Pure: no I/O.

The **declared** name is the author's own. The **canonical** name is one that the contract schemas allow;
policy, keys, approvals, records and bundles use it. The **listed** name is what `tools/list` shows over MCP:
clients pass it to model APIs, and one name that these refuse makes clients refuse the whole list.

| declared | canonical | listed |
| --- | --- | --- |
| `add` | `add` | `add` |
| `docs.search` | `docs.search` | `docs__search` |
| `createIssue` | `createissue_7sqobj1ih5` | `createIssue` |

Both are functions of the declared name alone, never of which other tools there are: otherwise a rule could
silently move to a different tool when tools come and go.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from portbook.model import Kind
from portbook.text.late_pattern import late_pattern
from portbook.text.sha256 import sha256

__all__ = [
    "ASSET_TOOLS",
    "MAX_NAME",
    "TOOL_PREFIX",
    "ToolNames",
    "canonical_name",
    "identifier_of",
    "is_declarable",
    "is_slug",
    "listed_name",
    "name_digest",
    "named_by",
    "shortened",
    "slug_of",
]

# Which names `tools/list` shows: those that every model API accepts, or the canonical ones.
ToolNames = Literal["portable", "canonical"]

# The longest name that MCP allows, and the longest that model APIs do (`^[a-zA-Z0-9_-]{1,64}$`).
MAX_NAME: Final = 128
_MAX_LISTED: Final = 64

# The characters that MCP recommends for names.
_DECLARABLE: Final = late_pattern(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME}}}", re.ASCII)
_NOT_CANONICAL: Final = late_pattern(r"[^a-z0-9_.]", re.ASCII)

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_DIGEST: Final = 10


def is_declarable(name: str) -> bool:
    """Return whether an author may give a tool this name."""
    return _DECLARABLE.fullmatch(name) is not None


def canonical_name(declared: str) -> str:
    """Return the canonical name of a tool: its declared name, if that has only a-z, 0-9, `_` and `.`.

    Otherwise the name is in lower case, has `_` for other characters, and ends with a digest of the declared
    name, so that `createIssue` and `createissue` stay apart.
    """
    folded = _NOT_CANONICAL.sub("_", declared.lower())
    if folded == declared:
        return declared
    # The head is kept, so that patterns such as `orders.*` match a long name, too.
    return f"{folded[: MAX_NAME - _DIGEST - 1]}_{name_digest(declared)}"


def listed_name(declared: str) -> str:
    """Return the name of a tool over MCP: with `__` for each dot, and at most 64 characters.

    Of a longer name the tail is kept, which says more than the head, with a digest of the whole before it.
    """
    return _with_tail_kept(declared.replace(".", "__"), declared, _MAX_LISTED)


def shortened(name: str, longest: int) -> str:
    """Return `name` in at most `longest` characters, shortened as `listed_name` does."""
    return _with_tail_kept(name, name, longest)


def _with_tail_kept(shown: str, name: str, longest: int) -> str:
    return shown if len(shown) <= longest else name_digest(name) + shown[_DIGEST - longest :]


def name_digest(text: str) -> str:
    """Return ten letters and digits that tell `text` from all others."""
    number = int.from_bytes(sha256(text.encode()).digest())
    digits = ""
    for _ in range(_DIGEST):
        number, digit = divmod(number, len(_DIGITS))
        digits += _DIGITS[digit]
    return digits


# The identifiers that records and policy use, such as `mcp.tool:add` and `mcp.resource:URI`.

TOOL_PREFIX: Final = "mcp.tool:"

# The envelope contract's tool identifier without its prefix.
_SLUG = late_pattern(rf"[a-z0-9_.]{{1,{MAX_NAME}}}", re.ASCII)


def is_slug(name: str) -> bool:
    """Return whether `name` is a valid canonical name."""
    return _SLUG.fullmatch(name) is not None


def identifier_of(kind: Kind, name: str) -> str:
    """Return the identifier that records use: kind and name."""
    return f"mcp.{kind}:{name}"


def named_by(identifier: str) -> tuple[Kind, str]:
    """Split an identifier into kind and name; without a prefix, it is a tool's name."""
    for kind in ("tool", "resource", "prompt", "completion"):
        prefix = f"mcp.{kind}:"
        if identifier.startswith(prefix):
            return kind, identifier.removeprefix(prefix)
    return "tool", identifier


def slug_of(identifier: str) -> str:
    """Return a tool's name from its identifier, with the prefix or without."""
    return identifier.removeprefix(TOOL_PREFIX)


# The names of the asset tools. Light: a server knows them even where it serves none of them.

ASSET_TOOLS: Final = frozenset(
    {
        "diff_assets",
        "get_example",
        "get_schema",
        "list_examples",
        "list_schemas",
        "populate_backend",
        "validate_asset",
        "validate_many",
    }
)
