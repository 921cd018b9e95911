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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from portbook.callers import AllowedKey
from portbook.schema.pins import PINS

__all__ = ["CONFIG_NAME", "SETTINGS", "BadSettings", "Setting", "Settings", "load_settings"]

CONFIG_NAME: Final = "portbook.toml"

Kind = Literal["text", "path", "whole", "switch", "texts", "keys", "mode", "address"]


Mode = Literal["enforce", "warn", "off"]
_MODES: Final = ("enforce", "warn", "off")


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
        "schema_override_uri",
        "schema_override_uri",
        "address",
        None,
        "PORTBOOK_SCHEMA_OVERRIDE_URI",
        "File, or file:, http: or https: address, of a schema to use instead of an embedded official one.",
    ),
    Setting(
        "schema_override_revision",
        "schema_override_revision",
        "text",
        max(PINS),
        "PORTBOOK_SCHEMA_OVERRIDE_REVISION",
        "Revision of MCP whose embedded schema is replaced; by default the newest.",
    ),
    Setting(
        "schema_override_sha256",
        "schema_override_sha256",
        "text",
        None,
        "PORTBOOK_SCHEMA_OVERRIDE_SHA256",
        "What the sha256 of that schema must be, in hexadecimal; without it any schema is taken.",
    ),
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
        "assets.enabled",
        "assets_enabled",
        "switch",
        None,
        None,
        "Whether the asset tools are served; by default where there is a folder of schemas or examples.",
    ),
    Setting(
        "assets.schemas",
        "asset_schemas",
        "path",
        None,
        "SYN_SCHEMAS_DIR",
        "Folder of schemas; by default libs/synesthetic-schemas/jsonschema, where there is one.",
    ),
    Setting(
        "assets.examples",
        "asset_examples",
        "path",
        None,
        "SYN_EXAMPLES_DIR",
        "Folder of examples; by default libs/synesthetic-schemas/examples, where there is one.",
    ),
    Setting(
        "assets.max_batch",
        "asset_max_batch",
        "whole",
        100,
        "MCP_MAX_BATCH",
        "How many assets validate_many takes.",
        1,
    ),
    Setting(
        "assets.backend_url",
        "backend_url",
        "text",
        None,
        "SYN_BACKEND_URL",
        "Address of the backend that populate_backend sends to; without one, it is unsupported.",
    ),
    Setting(
        "assets.backend_path",
        "backend_path",
        "text",
        "/synesthetic-assets/",
        "SYN_BACKEND_ASSETS_PATH",
        "Path below that address to which assets are sent.",
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
        "validation.incoming",
        "incoming_validation",
        "mode",
        "enforce",
        None,
        "What to do with a message that the official MCP schema does not allow: enforce, warn or off.",
    ),
    Setting(
        "validation.outgoing",
        "outgoing_validation",
        "mode",
        "enforce",
        None,
        "The same for what leaves.",
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
_SECTIONS: Final = frozenset(key.split(".")[0] for key in _BY_KEY if "." in key)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting's value. What each one means stands in `SETTINGS`."""

    schema_override_uri: str | None
    schema_override_revision: str
    schema_override_sha256: str | None
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
    assets_enabled: bool | None
    asset_schemas: Path | None
    asset_examples: Path | None
    asset_max_batch: int
    backend_url: str | None
    backend_path: str
    deterministic_ids: bool
    incoming_validation: Mode
    outgoing_validation: Mode
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
        if setting.env and setting.env in environ and not _is_unset(setting.env, environ):
            values[setting.key] = _convert(
                setting, _from_text(setting, environ[setting.env]), f"${setting.env}"
            )
    for key, value in flags.items():
        if value is not None:
            values[key] = _convert(_BY_KEY[key], value, "command line")
    return Settings(**{setting.field: values[setting.key] for setting in SETTINGS}, config=config)


def _is_unset(variable: str, environ: Mapping[str, str]) -> bool:
    """Return whether a variable counts as not set: those of other contracts are passed on empty for that."""
    return not environ[variable].strip() and not variable.startswith("PORTBOOK_")


def _read_file(path: Path) -> dict[str, Any]:
    import tomllib  # 20 ms, only where there is a file

    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadSettings(f"{path}: cannot be read: {error.strerror}") from None
    except RecursionError:
        raise BadSettings(f"{path}: nested too deeply") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: not TOML: {error}") from None
    values: dict[str, Any] = {}
    for key, value in _flatten(path, document):
        setting = _BY_KEY.get(key)
        if setting is None:
            raise _unknown(path, key)
        values[setting.key] = _from_folder(setting, _convert(setting, value, str(path)), path.parent)
    return values


def _flatten(path: Path, document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every key as `SETTINGS` names it, with its value."""
    for key, value in document.items():
        if key not in _SECTIONS:
            yield key, value
        elif isinstance(value, dict):
            for name, below in cast("dict[str, Any]", value).items():
                yield f"{key}.{name}", below
        else:
            raise BadSettings(f"{path}: {key} must be a table; start it with [{key}]")


def _from_folder(setting: Setting, value: Any, folder: Path) -> Any:
    """Return `value` as meant: a path in the file starts where the file stands, not where we were started."""
    if setting.kind == "path":
        return folder / value
    if setting.kind == "address" and not _SCHEME.match(value):
        return str(folder / value)
    if setting.key == "python.toolsets":
        return tuple(str(folder / item) if item.endswith(".py") else item for item in value)
    return value


def _unknown(path: Path, key: str) -> BadSettings:
    section, _, name = key.rpartition(".")
    everywhere = {known.rpartition(".")[2]: known for known in _BY_KEY}
    beside = {known.rpartition(".")[2]: known for known in _BY_KEY if known.rpartition(".")[0] == section}
    if not section:
        beside |= {known: known for known in _SECTIONS}
    for known in (beside, everywhere):  # the last: its name is right, its section is not
        if near := difflib.get_close_matches(name, known, n=1, cutoff=0.6):
            return BadSettings(f"{path}: unknown setting {key[:80]!r}; did you mean {known[near[0]]}?")
    return BadSettings(f"{path}: unknown setting {key[:80]!r}; docs/reference/settings.md lists the settings")


def _from_text(setting: Setting, text: str) -> Any:
    if setting.kind == "whole" and re.fullmatch(r"\d{1,10}", text, re.ASCII):
        return int(text)
    return text


def _convert(setting: Setting, value: Any, origin: str) -> Any:
    """Return `value` as the setting's type.

    Raises `BadSettings` where it is not one.
    """
    if setting.kind == "keys":
        return _keys(value, origin)
    checks: dict[Kind, tuple[bool, str]] = {
        "whole": (
            type(value) is int and setting.minimum <= value <= setting.maximum,
            f"a whole number from {setting.minimum} to {setting.maximum}",
        ),
        "switch": (isinstance(value, bool), "true or false"),
        "texts": (_is_texts(value), "a list of strings"),
        "mode": (value in _MODES, f"one of {', '.join(_MODES)}"),
        "text": (isinstance(value, str) and bool(value), "a string that is not empty"),
        "address": (isinstance(value, str) and bool(value), "a string that is not empty"),
        "path": (isinstance(value, str | Path) and bool(str(value)), "a string that is not empty"),
    }
    is_right, wanted = checks[setting.kind]
    if not is_right:
        raise BadSettings(f"{origin}: {setting.key} must be {wanted}")
    if setting.kind == "texts":
        return tuple(cast("list[str]", value))
    return Path(cast("str", value)) if setting.kind == "path" else value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in cast("list[Any]", value))


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
