"""Reads `[[keys.allow]]`: the keys of callers that the settings file has. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from portbook.globs import problem_of
from portbook.settings.all_problems_at_once import BadSettings
from portbook.stores.caller_keys import ANONYMOUS, OPERATOR, AllowedKey
from portbook.text.did_you_mean import did_you_mean
from portbook.text.late_pattern import late_pattern

__all__ = ["read_allowed_keys"]

_SHA256: Final = late_pattern(r"[0-9a-fA-F]{64}", re.ASCII)
_MEMBERS: Final = ("name", "sha256", "tools")


def read_allowed_keys(value: Any, place_of: Callable[..., str]) -> tuple[AllowedKey, ...]:
    """Return the keys; `place_of` returns where a key is given, by its number and one of its members.

    Raises `BadSettings` for all that cannot be used.
    """
    items = cast("list[Any]", value if isinstance(value, list) else [value])
    read: list[AllowedKey] = []
    problems: list[str] = []
    for number, item in enumerate(items):
        try:
            read.append(_read(item, partial(place_of, number)))
        except BadSettings as error:
            problems.extend(error.problems)
    if problems:
        raise BadSettings(*problems)
    return tuple(read)


def _read(item: Any, place_of: Callable[..., str]) -> AllowedKey:
    table = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    for member in table:
        if member not in _MEMBERS:
            hint = did_you_mean(member, _MEMBERS, f"use {', '.join(_MEMBERS)}")
            raise BadSettings(f"{place_of(member)}: {member[:80]!r} is not part of [[keys.allow]]; {hint}")
    name, digest, tools = table.get("name"), table.get("sha256"), table.get("tools", ["*"])
    if not isinstance(name, str) or not isinstance(digest, str):
        raise BadSettings(f"{place_of()}: each [[keys.allow]] needs name and sha256, and may have tools")
    named = f"keys.allow {name!r}"
    if name in (ANONYMOUS.name, OPERATOR.name):
        raise BadSettings(f"{place_of('name')}: {named}: this name is reserved; choose a different one")
    if not _SHA256.fullmatch(digest):
        raise BadSettings(
            f"{place_of('sha256')}: {named}: sha256 must be 64 hexadecimal digits (sha256 of the key)"
        )
    patterns = cast("list[Any]", tools) if isinstance(tools, list | tuple) else None
    if patterns is None or not all(isinstance(pattern, str) for pattern in patterns):
        raise BadSettings(f"{place_of('tools')}: {named}: tools must be a list of patterns")
    for number, pattern in enumerate(patterns):
        if problem := problem_of(pattern):
            place = place_of("tools", number)
            raise BadSettings(f"{place}: {named}: bad pattern {pattern[:80]!r}: {problem}")
    return AllowedKey(name, digest, tuple(patterns))
