"""Reads `[[keys.allow]]`: the keys of callers that the settings file has. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, cast

from portbook.access.callers import ANONYMOUS, OPERATOR, AllowedKey
from portbook.globs import problem_of
from portbook.settings.bad_settings import BadSettings
from portbook.text.did_you_mean import did_you_mean
from portbook.text.late_pattern import late_pattern

__all__ = ["read_allowed_keys"]

_SHA256: Final = late_pattern(r"[0-9a-fA-F]{64}", re.ASCII)
_MEMBERS: Final = ("name", "sha256", "tools")


def read_allowed_keys(value: Any, place_of: Callable[[int], str]) -> tuple[AllowedKey, ...]:
    """Return the keys; `place_of` returns where the key with this number is given.

    Raises `BadSettings` for the first one that cannot be used.
    """
    items = cast("list[Any]", value if isinstance(value, list) else [value])
    return tuple(_read(item, place_of(number)) for number, item in enumerate(items))


def _read(item: Any, place: str) -> AllowedKey:
    table = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    for member in table:
        if member not in _MEMBERS:
            hint = did_you_mean(member, _MEMBERS, f"use {', '.join(_MEMBERS)}")
            raise BadSettings(f"{place}: {member[:80]!r} is not part of [[keys.allow]]; {hint}")
    name, digest, tools = table.get("name"), table.get("sha256"), table.get("tools", ["*"])
    if not isinstance(name, str) or not isinstance(digest, str):
        raise BadSettings(f"{place}: each [[keys.allow]] needs name and sha256, and may have tools")
    named = f"{place}: keys.allow {name!r}"
    if name in (ANONYMOUS.name, OPERATOR.name):
        raise BadSettings(f"{named}: this name is reserved; choose a different one")
    if not _SHA256.fullmatch(digest):
        raise BadSettings(f"{named}: sha256 must be 64 hexadecimal digits (sha256 of the key)")
    patterns = cast("list[Any]", tools) if isinstance(tools, list | tuple) else None
    if patterns is None or not all(isinstance(pattern, str) for pattern in patterns):
        raise BadSettings(f"{named}: tools must be a list of patterns")
    for pattern in patterns:
        if problem := problem_of(pattern):
            raise BadSettings(f"{named}: bad pattern {pattern[:80]!r}: {problem}")
    return AllowedKey(name, digest, tuple(patterns))
