"""Typed settings from flags, environment and `portbook.toml`. Nothing is read at import.

Where one setting is given in several places, the first of these wins:

1. a flag on the command line,
2. its environment variable,
3. `portbook.toml`,
4. its default.

An unknown key or a value of the wrong type stops the start, with file, line, column, key and a suggestion;
all of them are told at once.
"""

from __future__ import annotations

from portbook.settings.bad_settings import BadSettings, ProblemList
from portbook.settings.declared_settings import SETTINGS, Setting
from portbook.settings.loading import CONFIG_NAME, Settings, by_key, load_settings

__all__ = [
    "CONFIG_NAME",
    "SETTINGS",
    "BadSettings",
    "ProblemList",
    "Setting",
    "Settings",
    "by_key",
    "load_settings",
]
