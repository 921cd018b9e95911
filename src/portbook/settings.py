"""Typed settings from flags, environment and `portbook.toml`. Nothing is read at import.

Where one setting is given in several places, the first of these wins:

1. a flag on the command line,
2. its environment variable,
3. `portbook.toml`,
4. its default.

An unknown key or a value of the wrong type stops the start, with the file, the key and a suggestion.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from portbook.callers import AllowedKey

__all__ = ["CONFIG_NAME", "SETTINGS", "BadSettings", "Setting", "Settings", "load_settings"]

CONFIG_NAME: Final = "portbook.toml"

Kind = Literal["text", "path", "whole", "switch", "texts", "keys"]


class BadSettings(ValueError):
    """Settings that cannot be used; the message says where they stand and what to do."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: where it stands in the file, its variable, its default, and what it means."""

    key: str
    field: str
    """Its name in `Settings`."""
    kind: Kind
    default: Any
    env: str | None
    meaning: str
    minimum: int = 0
    maximum: int = 2**31


SETTINGS: Final = (
    Setting(
        "server.host", "host", "text", "127.0.0.1", "PORTBOOK_HOST", "Address that the HTTP door binds to."
    ),
    Setting(
        "server.port",
        "port",
        "whole",
        8765,
        "PORTBOOK_PORT",
        "Port of the HTTP door; 0 takes a free one.",
        0,
        65535,
    ),
    Setting(
        "audit.log_dir",
        "log_dir",
        "path",
        Path("runs"),
        "PORTBOOK_LOG_DIR",
        "Folder under which records are kept.",
    ),
    Setting(
        "audit.keep",
        "keep_runs",
        "whole",
        50,
        None,
        "How many runs' files to keep; older ones are removed at start.",
        1,
    ),
    Setting(
        "python.toolsets", "toolsets", "texts", (), None, "Python files or modules whose toolsets are served."
    ),
    Setting(
        "execution.timeout_ms",
        "timeout_ms",
        "whole",
        30_000,
        None,
        "Deadline of a tool that does not set its own.",
        1,
        86_400_000,
    ),
    Setting(
        "execution.workers",
        "workers",
        "whole",
        16,
        None,
        "Worker threads for plain Python functions.",
        1,
        1024,
    ),
    Setting(
        "docs.enabled",
        "docs_enabled",
        "switch",
        True,
        None,
        "Whether the built-in tool docs.search is served.",
    ),
    Setting(
        "docs.folder",
        "docs_folder",
        "path",
        None,
        "PORTBOOK_DOCS",
        "Folder that docs.search searches; by default these docs.",
    ),
    Setting(
        "schemas.root",
        "schema_root",
        "path",
        None,
        "PORTBOOK_SCHEMA_ROOT",
        "Folder of contract schemas; a bundle under its tools/ replaces the contract of the tool it names.",
    ),
    Setting(
        "ids.deterministic",
        "deterministic_ids",
        "switch",
        False,
        None,
        "Make request, trace and span ids from the content alone.",
    ),
    Setting(
        "keys.required",
        "keys_required",
        "switch",
        None,
        None,
        "Whether a call needs a key; by default only where HTTP is bound to more than loopback.",
    ),
    Setting(
        "keys.allow",
        "allowed_keys",
        "keys",
        (),
        None,
        "The keys that are accepted: name, and sha256 of the key.",
    ),
)

_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
_SECTIONS: Final = frozenset(key.split(".")[0] for key in _BY_KEY)
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting's value. What each one means stands in `SETTINGS`."""

    host: str
    port: int
    log_dir: Path
    keep_runs: int
    toolsets: tuple[str, ...]
    timeout_ms: int
    workers: int
    docs_enabled: bool
    docs_folder: Path | None
    schema_root: Path | None
    deterministic_ids: bool
    keys_required: bool | None
    allowed_keys: tuple[AllowedKey, ...]
    config: Path | None = None
    """The file they came from, if there was one."""


def load_settings(
    config: Path | None, environ: Mapping[str, str], flags: Mapping[str, Any], folder: Path
) -> Settings:
    """Return the settings in force; `flags` go by key, `folder` is where an unnamed file is looked for.

    Raises `BadSettings` for a file that cannot be read, an unknown key or a value of the wrong type.
    """
    if config is None and (named := environ.get("PORTBOOK_CONFIG")):
        config = Path(named)
    if config is None and (folder / CONFIG_NAME).is_file():
        config = folder / CONFIG_NAME
    values = {setting.key: setting.default for setting in SETTINGS}
    if config is not None:
        values.update(_read_file(config))
    for setting in SETTINGS:
        if setting.env and setting.env in environ:
            values[setting.key] = _convert(
                setting, _from_text(setting, environ[setting.env]), f"${setting.env}"
            )
    for key, value in flags.items():
        if value is not None:
            values[key] = _convert(_BY_KEY[key], value, "command line")
    return Settings(**{setting.field: values[setting.key] for setting in SETTINGS}, config=config)


def _read_file(path: Path) -> dict[str, Any]:
    import tomllib  # 20 ms, only where there is a file

    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadSettings(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: not TOML: {error}") from None
    values: dict[str, Any] = {}
    for section, table in document.items():
        if section not in _SECTIONS:
            raise _unknown(path, section)
        if not isinstance(table, dict):
            raise BadSettings(f"{path}: {section} must be a table; start it with [{section}]")
        for name, value in cast("dict[str, Any]", table).items():
            setting = _BY_KEY.get(f"{section}.{name}")
            if setting is None:
                raise _unknown(path, f"{section}.{name}")
            values[setting.key] = _from_folder(setting, _convert(setting, value, str(path)), path.parent)
    return values


def _from_folder(setting: Setting, value: Any, folder: Path) -> Any:
    """Return `value` as meant: a path in the file starts where the file stands, not where we were started."""
    if setting.kind == "path":
        return folder / value
    if setting.key == "python.toolsets":
        return tuple(str(folder / item) if item.endswith(".py") else item for item in value)
    return value


def _unknown(path: Path, key: str) -> BadSettings:
    known = [*_BY_KEY, *sorted(_SECTIONS)]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else "docs/reference/settings.md lists the settings"
    return BadSettings(f"{path}: unknown setting {key[:80]!r}; {hint}")


def _from_text(setting: Setting, text: str) -> Any:
    if setting.kind == "whole" and re.fullmatch(r"\d{1,10}", text, re.ASCII):
        return int(text)
    return text


def _convert(setting: Setting, value: Any, origin: str) -> Any:
    """Return `value` as the setting's type.

    Raises `BadSettings` where it is not one.
    """
    problem: str
    if setting.kind == "whole":
        if type(value) is int and setting.minimum <= value <= setting.maximum:
            return value
        problem = f"must be a whole number from {setting.minimum} to {setting.maximum}"
    elif setting.kind == "switch":
        if isinstance(value, bool):
            return value
        problem = "must be true or false"
    elif setting.kind == "texts":
        if isinstance(value, list | tuple) and all(
            isinstance(item, str) for item in cast("list[Any]", value)
        ):
            return tuple(cast("list[str]", value))
        problem = "must be a list of strings"
    elif setting.kind == "keys":
        return _keys(value, origin)
    elif isinstance(value, str | Path) and str(value):
        return Path(value) if setting.kind == "path" else value
    else:
        problem = "must be a string that is not empty"
    raise BadSettings(f"{origin}: {setting.key} {problem}")


def _keys(value: Any, origin: str) -> tuple[AllowedKey, ...]:
    keys: list[AllowedKey] = []
    for item in cast("list[Any]", value if isinstance(value, list) else [value]):
        name: Any = item.get("name") if isinstance(item, dict) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] # TOML is Any
        digest: Any = item.get("sha256") if isinstance(item, dict) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] # TOML is Any
        if not isinstance(name, str) or not isinstance(digest, str) or len(cast("dict[str, Any]", item)) != 2:
            raise BadSettings(f"{origin}: each [[keys.allow]] has a name and a sha256, and nothing else")
        if not _SHA256.fullmatch(digest):
            raise BadSettings(
                f"{origin}: keys.allow {name!r}: sha256 must be 64 hexadecimal digits (sha256 of the key)"
            )
        keys.append(AllowedKey(name, digest))
    return tuple(keys)
