"""Computes the JSON Patch between two documents with `add`, `remove` and `replace`, deterministically.

Objects are compared member by member, arrays are replaced as a whole. The patch is ordered by path. No
operation addresses an item of an array, so the patch is valid in any order. Values are compared as JSON
writes them: `1`, `1.0` and `true` differ.

Every path repeats the names above it. Where the operations below an object would take several times as many
bytes as the object, it is replaced as a whole, so a patch is never longer than a few times its documents.

Linear in the size of the documents: each member is compared once, and equal subtrees are skipped by a
comparison of whole subtrees at every depth that is a power of two. Pure: no I/O.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Final, cast

from portbook.canonical import is_same_json, json_bytes
from portbook.model import JSON, JSONObject
from portbook.text.named_tuple import NamedTuple

__all__ = ["ChangedPlace", "changed_places", "diff", "diff_assets"]

# Types whose equal values are written in the same way.
_PLAIN: Final = frozenset({str, int, bool, type(None)})

# The bytes of an operation without its path and value, and the bytes of operations per byte compared.
_OPERATION: Final = 32
_TIMES: Final = 4

# Below this size, the object is not measured.
_FREE: Final = 64 * 1024


def diff_assets(base: JSON, new: JSON) -> JSONObject:
    """Return the contract's result: the patch from `base` to `new`."""
    return {"ok": True, "patch": cast("JSON", diff(base, new))}


def diff(base: JSON, new: JSON) -> list[JSONObject]:
    """Return the operations that turn `base` into `new`, ordered by path."""
    patch: list[JSONObject] = []
    if isinstance(base, dict) and isinstance(new, dict):
        _compare(base, new, [], 0, patch)
        patch.sort(key=itemgetter("path"))
    elif not _is_same(base, new):
        patch.append({"op": "replace", "path": "", "value": new})
    return patch


class ChangedPlace(NamedTuple):
    """One operation of a patch, with what stood there before it."""

    op: str
    pointer: str
    before: JSON
    """None where nothing did."""
    after: JSON


def changed_places(base: JSON, new: JSON) -> list[ChangedPlace]:
    """Return the places in which two documents differ, with both values of each, ordered by path."""
    found: list[ChangedPlace] = []
    for operation in diff(base, new):
        op, pointer = str(operation["op"]), str(operation["path"])
        before = None if op == "add" else _value_at(base, pointer)
        found.append(ChangedPlace(op, pointer, before, operation.get("value")))
    return found


def _value_at(document: JSON, pointer: str) -> JSON:
    for step in pointer.split("/")[1:]:
        assert isinstance(document, dict)  # a patch has no paths into lists
        document = document[step.replace("~1", "/").replace("~0", "~")]
    return document


def _compare(
    base: JSONObject, new: JSONObject, above: list[str], length: int, patch: list[JSONObject]
) -> int:
    """Add the differences below the path `above`, of `length` bytes; return their bytes without values."""
    room = _FREE
    start = len(patch)
    cost = 0
    removed = [name for name in base if name not in new]
    changed: list[tuple[str, str]] = []
    # Only at these depths, so that the total cost stays at a few comparisons of everything.
    depth = len(above) + 1
    looks_ahead = depth & (depth - 1) == 0
    for name, value in new.items():
        if name not in base:
            changed.append(("add", name))
            continue
        old = base[name]
        kind = type(value)
        if kind is type(old):
            if kind is dict:
                if not (looks_ahead and value == old and is_same_json(old, value)):
                    below = cast("tuple[JSONObject, JSONObject]", (old, value))
                    above.append(_step(name))
                    cost += _compare(*below, above, length + _size(above[-1]), patch)
                    above.pop()
                    if cost > room and cost > (room := _room(base, new)):
                        break
                continue
            if value == old and (kind in _PLAIN or _is_same(old, value)):
                continue
        changed.append(("replace", name))
    cost += (len(removed) + len(changed)) * (length + _OPERATION)
    if cost > room and cost > _room(base, new):
        del patch[start:]
        patch.append({"op": "replace", "path": "".join(above), "value": new})
        return length + _OPERATION
    if removed or changed:
        path = "".join(above)
        patch.extend({"op": "remove", "path": path + _step(name)} for name in removed)
        patch.extend({"op": op, "path": path + _step(name), "value": new[name]} for op, name in changed)
    return cost


def _room(*documents: JSONObject) -> int:
    """Return how many bytes the operations below an object may take, without their values."""
    return max(_FREE, _TIMES * sum(len(json_bytes(document)) for document in documents))


def _is_same(base: JSON, new: JSON) -> bool:
    """Return whether JSON writes both in the same way; the order of members does not count."""
    if type(base) is not type(new) or base != new:
        return False
    if isinstance(new, dict | list):  # inside of them, 1, 1.0 and True are equal to Python
        return is_same_json(base, new)
    # So are 0.0 and -0.0.
    return not isinstance(new, float) or math.copysign(1, new) == math.copysign(1, cast("float", base))


def _size(step: str) -> int:
    """Return about how many bytes a part of a path takes in JSON; an escape may take six."""
    return len(step) if step.isascii() and step.isprintable() else len(json_bytes(step))


def _step(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")
