"""Checks and converts the value of one setting. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

from portbook.settings.all_problems_at_once import BadSettings
from portbook.settings.allowed_keys import read_allowed_keys
from portbook.settings.declared_settings import CertificateFiles, Setting
from portbook.text.did_you_mean import did_you_mean

__all__ = ["value_from_text", "value_of"]

# Returns where a value is given, or a part of it by its path in the value. Called for messages alone: to
# find a place takes time.
Place: TypeAlias = Callable[..., str]

_ITEMS: dict[str, type] = {"texts": str, "tables": dict}


def value_from_text(setting: Setting, text: str, origin: str) -> Any:
    """Return the value of a setting that a variable gives as text.

    Raises `BadSettings` where it cannot be one.
    """
    is_number = setting.kind in ("whole", "count") and re.fullmatch(r"\d{1,10}", text, re.ASCII)
    return value_of(setting, int(text) if is_number else text, lambda *_: origin)


def value_of(setting: Setting, value: Any, place: Place) -> Any:
    """Return `value` as the setting's type; `place` returns where it, or a part of it, is given.

    Raises `BadSettings` where it is not of that type.
    """
    if setting.kind == "keys":
        return read_allowed_keys(value, place)
    if not _is_right(setting, value):
        number = _first_wrong_item(setting, value)
        where = place() if number is None else place(number)
        raise BadSettings(f"{where}: {setting.key} must be {_wanted(setting, value)}")
    if setting.kind in _ITEMS:
        return tuple(cast("list[Any]", value))
    if setting.kind == "certificate":
        files = cast("dict[str, str]", value)
        return CertificateFiles(Path(files["cert"]), Path(files["key"]))
    return Path(cast("str", value)) if setting.kind == "path" else value


def _is_right(setting: Setting, value: Any) -> bool:
    match setting.kind:
        case "whole":
            return type(value) is int and setting.minimum <= value <= setting.maximum
        case "count":
            is_number = type(value) is int and setting.minimum <= value <= setting.maximum
            return is_number or value == "auto"
        case "switch":
            return isinstance(value, bool)
        case "texts" | "tables":
            return isinstance(value, list | tuple) and _first_wrong_item(setting, value) is None
        case "choice":
            return isinstance(value, str) and value in setting.choices
        case "path":
            return isinstance(value, str | Path) and bool(str(value))
        case "table":
            return isinstance(value, dict)
        case "certificate":
            return _is_certificate(value)
        case _:
            return isinstance(value, str) and bool(value)


def _is_certificate(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    files = cast("dict[str, Any]", value)
    return set(files) == {"cert", "key"} and all(isinstance(file, str) and file for file in files.values())


def _first_wrong_item(setting: Setting, value: Any) -> int | None:
    if setting.kind not in _ITEMS or not isinstance(value, list | tuple):
        return None
    items = enumerate(cast("list[Any]", value))
    return next(
        (number for number, item in items if not isinstance(item, _ITEMS[setting.kind]) or item == ""), None
    )


def _wanted(setting: Setting, value: Any) -> str:
    """Return what a value must be, in words."""
    match setting.kind:
        case "whole":
            return f"a whole number from {setting.minimum} to {setting.maximum}"
        case "count":
            return f"auto, or a whole number from {setting.minimum} to {setting.maximum}"
        case "switch":
            return "true or false, without quotes"
        case "texts":
            listed = cast("list[Any]", value) if isinstance(value, list | tuple) else []
            return 'a list of strings, such as ["a", "b"]' + (", none of them empty" if "" in listed else "")
        case "tables":
            return f"a list of tables; start each with [[{setting.key}]]"
        case "table":
            return f"a table; start it with [{setting.key}.NAME]"
        case "certificate":
            return "a table of two files: { cert = FILE, key = FILE }"
        case "choice":
            hint = did_you_mean(value, setting.choices) if isinstance(value, str) else ""
            return f"one of {', '.join(setting.choices)}" + (f"; {hint}" if hint else "")
        case _:
            return "a string that is not empty"
