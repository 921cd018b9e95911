"""A JSON Patch from one document to another: `add`, `remove` and `replace`, always the same for the same two.

Objects are compared member by member, arrays are replaced whole. The patch is ordered by path, and as no
operation is about an array's item, any order would do: it is always valid. Values are told apart as JSON
writes them: `1`, `1.0` and `true` are three.

Linear in the size of the documents: each member is looked at once, and what is equal is passed over with a
comparison of whole subtrees at every depth that is a power of two. Pure: no I/O.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Final, cast

from portbook.canonical import is_same_json
from portbook.model import JSON, JSONObject

__all__ = ["diff", "diff_assets"]

# Of these types, equal values are written alike.
_PLAIN: Final = frozenset({str, int, bool, type(None)})


def diff_assets(base: JSON, new: JSON) -> JSONObject:
    """Return the contract's result: the patch that makes `new` of `base`."""
    return {"ok": True, "patch": cast("JSON", diff(base, new))}


def diff(base: JSON, new: JSON) -> list[JSONObject]:
    """Return the operations that make `new` of `base`, ordered by path."""
    patch: list[JSONObject] = []
    if isinstance(base, dict) and isinstance(new, dict):
        _compare(base, new, "", 1, patch)
        patch.sort(key=itemgetter("path"))
    elif not _is_same(base, new):
        patch.append({"op": "replace", "path": "", "value": new})
    return patch


def _compare(base: JSONObject, new: JSONObject, path: str, depth: int, patch: list[JSONObject]) -> None:
    patch.extend({"op": "remove", "path": _below(path, name)} for name in base if name not in new)
    # So seldom that its cost does not add up to more than a few looks at everything.
    looks_ahead = depth & (depth - 1) == 0
    for name, value in new.items():
        if name not in base:
            patch.append({"op": "add", "path": _below(path, name), "value": value})
            continue
        old = base[name]
        kind = type(value)
        if kind is type(old):
            if kind is dict:
                if not (looks_ahead and value == old and is_same_json(old, value)):
                    below = cast("tuple[JSONObject, JSONObject]", (old, value))
                    _compare(*below, _below(path, name), depth + 1, patch)
                continue
            if value == old and (kind in _PLAIN or _is_same(old, value)):
                continue
        patch.append({"op": "replace", "path": _below(path, name), "value": value})


def _is_same(base: JSON, new: JSON) -> bool:
    """Return whether JSON would write both the same way; the order of members does not count."""
    if type(base) is not type(new) or base != new:
        return False
    if isinstance(new, dict | list):  # Python holds 1, 1.0 and True to be equal inside of them
        return is_same_json(base, new)
    # So it does 0.0 and -0.0.
    return not isinstance(new, float) or math.copysign(1, new) == math.copysign(1, cast("float", base))


def _below(path: str, name: str) -> str:
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
