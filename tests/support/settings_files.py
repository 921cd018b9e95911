"""Settings loaded from a text, and the complaint where they cannot be."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from portbook.settings import CONFIG_NAME, SETTINGS, BadSettings, Settings, load_settings

BY_KEY = {setting.key: setting for setting in SETTINGS}


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def load(
    folder: Path, text: str | None = None, environ: dict[str, str] | None = None, **flags: Any
) -> Settings:
    """The settings of a folder whose portbook.toml has this text; flags are named section__key."""
    if text is not None:
        (folder / CONFIG_NAME).write_text(text, "utf-8")
    given = {name.replace("__", "."): value for name, value in flags.items()}
    return load_settings(None, environ or {}, given, folder)


def complaint(
    folder: Path, text: str | None = None, environ: dict[str, str] | None = None, **flags: Any
) -> str:
    with pytest.raises(BadSettings) as raised:
        load(folder, text, environ, **flags)
    return str(raised.value)


def value_of(settings: Settings, key: str) -> Any:
    return attrgetter(BY_KEY[key].field)(settings)


def line(key: str, value: str) -> str:
    section, _, name = key.rpartition(".")
    return f"[{section}]\n{name} = {value}\n" if section else f"{name} = {value}\n"
