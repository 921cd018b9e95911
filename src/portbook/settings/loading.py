"""Settings as values: read from flags, variables and the file, checked, and merged."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from portbook.access.callers import AllowedKey
from portbook.policy.limits import LIMIT_NAMES, Limits
from portbook.settings.allowed_keys import read_allowed_keys
from portbook.settings.bad_settings import BadSettings
from portbook.settings.table import SETTINGS, CertificateFiles, Setting
from portbook.text.did_you_mean import did_you_mean
from portbook.text.late_pattern import late_pattern
from portbook.tools.tool_names import ToolNames

if TYPE_CHECKING:
    from portbook.settings.line_numbers import Places

__all__ = ["CONFIG_NAME", "BadSettings", "Settings", "by_key", "load_settings"]

CONFIG_NAME: Final = "portbook.toml"

Mode = Literal["enforce", "warn", "off"]

_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
_SECTIONS: Final = frozenset(key.split(".")[0] for key in _BY_KEY if "." in key)
_SCHEME: Final = late_pattern(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Settings:
    """The value of every setting. `SETTINGS` says what each one means."""

    schema_override_uri: str | None
    schema_override_revision: str
    schema_override_sha256: str | None
    host: str
    port: int
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    socket: Path | None
    tls: CertificateFiles | None
    trusted_proxies: tuple[str, ...]
    server_name: str
    server_title: str | None
    server_version: str | None
    server_instructions: str | None
    tool_names: ToolNames
    log_dir: Path
    keep_runs: int
    on_audit_failure: Literal["refuse", "warn"]
    audit_to_stderr: bool
    audit_arguments: bool
    store_path: Path
    toolsets: tuple[str, ...]
    timeout_ms: int
    workers: int
    docs_enabled: bool | None
    docs_folder: Path | None
    schema_root: Path | None
    assets_enabled: bool | None
    asset_schemas: Path | None
    asset_examples: Path | None
    asset_max_batch: int
    asset_redaction: Literal["refuse", "off"]
    backend_url: str | None
    backend_path: str
    tracebacks: bool
    deterministic_ids: bool
    incoming_validation: Mode
    outgoing_validation: Mode
    keys_required: bool | None
    allowed_keys: tuple[AllowedKey, ...]
    limits: Limits
    policy_rules: tuple[dict[str, Any], ...]
    approval_expires_s: int
    approval_wait_s: int
    redaction_enabled: bool
    redacted_keys: tuple[str, ...]
    redacted_pointers: tuple[str, ...]
    redacted_patterns: tuple[str, ...]
    secret_variables: tuple[str, ...]
    detectors: bool
    redacted_cards: Literal["strings", "everywhere", "off"]
    redaction_mode: Literal["replace", "remove", "hash"]
    envelope_default: Literal["off", "wrap", "provenance"]
    signing_key: Path | None
    http_tables: dict[str, Any]
    config: Path | None = None
    """The settings file, if there was one."""
    is_given: bool = False
    """Whether that file sets anything."""
    places: Places | None = field(default=None, compare=False, repr=False)
    """The lines of that file."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)
    """Where each setting is given that does not come from that file, by its key."""

    @property
    def folder(self) -> Path:
        """Return the folder in which relative paths of the file start: its own."""
        return Path() if self.config is None else self.config.parent

    def place_of(self, *path: str | int) -> str:
        """Return where a key is given: what its flag or variable is called, or its file and line."""
        return self._origin(path) or self._line(path, None if self.config is None else self.config.name)

    def complain(self, path: tuple[str | int, ...], sentence: str) -> BadSettings:
        """Return the exception for a key that cannot be used, with the place where it is given."""
        place = self._origin(path) or self._line(path, self.config)
        return BadSettings(f"{place}: {dotted(path)} {sentence}")

    def _origin(self, path: tuple[str | int, ...]) -> str | None:
        """Return where a key is given outside of the file; without a file, a section has that of its keys."""
        whole = f"{dotted(path)}."
        for key, origin in self.origins.items():
            if whole.startswith((f"{key}.", f"{key}[")) or (self.places is None and key.startswith(whole)):
                return origin
        return None

    def _line(self, path: tuple[str | int, ...], name: Path | str | None) -> str:
        return "default" if name is None or self.places is None else f"{name}:{self.places.line_of(path)}"


def load_settings(
    config: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
    folder: Path | None,
    flags_from: Callable[[str], str] = lambda _: "command line",
) -> Settings:
    """Return the settings in force; `flags` go by key, `folder` is where an unnamed file is looked for.

    `flags_from` returns what messages call the place that a flag comes from, by its key.

    Raises `BadSettings` for a file that cannot be read, an unknown key or a value of the wrong type.
    """
    if config is None and (named := environ.get("PORTBOOK_CONFIG")):
        config = Path(named)
    if config is None and folder is not None and os.path.lexists(folder / CONFIG_NAME):
        # Even a broken link: the operator wanted these settings, so that an error is better than none.
        config = folder / CONFIG_NAME
    values = {setting.key: setting.default for setting in SETTINGS}
    places, given = None, {}
    origins: dict[str, str] = {}
    if config is not None:
        values["store.path"] = config.parent / values["store.path"]
        given, places = _read_file(config)
        values.update(given)
    for setting in SETTINGS:
        if setting.env and setting.env in environ and not _is_unset(setting.env, environ):
            origins[setting.key] = origin = f"${setting.env}"
            values[setting.key] = _convert(setting, _from_text(setting, environ[setting.env]), origin)
    for key, value in flags.items():
        if value is not None:
            origins[key] = origin = flags_from(key)
            values[key] = _convert(_BY_KEY[key], value, origin)
    limits = Limits(**{name: values.pop(f"policy.{name}") for name in LIMIT_NAMES})
    named_values = {_BY_KEY[key].field: value for key, value in values.items()}
    return Settings(
        **named_values, limits=limits, config=config, is_given=bool(given), places=places, origins=origins
    )


def by_key(tables: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Return settings that are nested as in a file as flags: each value by its key.

    Raises `BadSettings` for an unknown key; `origin` is what the message calls their place.
    """
    flags: dict[str, Any] = {}
    for name, value in tables.items():
        if name not in _SECTIONS:
            flags[name] = value
        elif isinstance(value, Mapping):
            below = cast("Mapping[str, Any]", value)
            flags |= {f"{name}.{member}": each for member, each in below.items()}
        else:
            raise BadSettings(f"{origin}: {name} must be a table")
    for key in flags:
        if key not in _BY_KEY:
            raise _unknown(origin, key)
    return flags


def _is_unset(variable: str, environ: Mapping[str, str]) -> bool:
    """Return whether a variable counts as not set: those of the asset specification may be set to nothing."""
    return not environ[variable].strip() and not variable.startswith("PORTBOOK_")


def dotted(path: tuple[str | int, ...]) -> str:
    """Return a path as people write it: `policy.rules[2].action`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part[:80]}" for part in path)
    return text.removeprefix(".")


def _read_file(path: Path) -> tuple[dict[str, Any], Places]:
    import tomllib  # 20 ms, only where there is a file

    from portbook.settings.line_numbers import Places

    try:
        text = path.read_text("utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise BadSettings(f"{path}: cannot be read: {error.strerror}") from None
    except RecursionError:
        raise BadSettings(f"{path}: nested too deeply") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: not TOML: {error}") from None
    places = Places(text)
    values: dict[str, Any] = {}
    for key, value in _flatten(path, document, places):
        origin = f"{path}:{places.line_of(tuple(key.split('.')))}"
        setting = _BY_KEY.get(key)
        if setting is None:
            raise _unknown(origin, key)
        converted = _convert(setting, value, origin, _line_of_item(path, key, places))
        values[setting.key] = _from_folder(setting, converted, path.parent)
    return values, places


def _line_of_item(path: Path, key: str, places: Places) -> Callable[[int], str]:
    return lambda number: f"{path}:{places.line_of((*key.split('.'), number))}"


def _flatten(path: Path, document: dict[str, Any], places: Places) -> Iterator[tuple[str, Any]]:
    """Yield every key as `SETTINGS` names it, with its value."""
    for key, value in document.items():
        if key not in _SECTIONS:
            yield key, value
        elif isinstance(value, dict):
            for name, below in cast("dict[str, Any]", value).items():
                yield f"{key}.{name}", below
        else:
            line = places.line_of((key,))
            raise BadSettings(f"{path}:{line}: {key} must be a table; start it with [{key}]")


def _from_folder(setting: Setting, value: Any, folder: Path) -> Any:
    """Return `value`, with a relative path in the file starting in the folder of the file."""
    if setting.kind == "path":
        return folder / value
    if setting.kind == "certificate":
        return CertificateFiles(folder / value.cert, folder / value.key)
    if setting.kind == "address" and not _SCHEME.match(value):
        return str(folder / value)
    if setting.key == "python.toolsets":
        return tuple(str(folder / item) if item.endswith(".py") else item for item in value)
    return value


def _unknown(origin: str, key: str) -> BadSettings:
    section, _, name = key.rpartition(".")
    everywhere = {known.rpartition(".")[2]: known for known in _BY_KEY}
    beside = {known.rpartition(".")[2]: known for known in _BY_KEY if known.rpartition(".")[0] == section}
    if not section:
        beside |= {known: known for known in _SECTIONS}
    # Of the other sections last: the name is right there, and the section is not.
    hint = did_you_mean(name, beside) or did_you_mean(
        name, everywhere, "docs/reference/settings.md lists the settings"
    )
    return BadSettings(f"{origin}: unknown setting {key[:80]!r}; {hint}")


def _from_text(setting: Setting, text: str) -> Any:
    if setting.kind == "whole" and re.fullmatch(r"\d{1,10}", text, re.ASCII):
        return int(text)
    return text


def _convert(setting: Setting, value: Any, origin: str, origin_of: Callable[[int], str] | None = None) -> Any:
    """Return `value` as the setting's type; `origin_of` returns where an item of a list is given.

    Raises `BadSettings` where it is not one.
    """
    if setting.kind == "keys":
        return read_allowed_keys(value, origin_of or (lambda _: origin))
    is_text = isinstance(value, str) and bool(value)
    checks: dict[str, tuple[bool, str]] = {
        "whole": (
            type(value) is int and setting.minimum <= value <= setting.maximum,
            f"a whole number from {setting.minimum} to {setting.maximum}",
        ),
        "switch": (isinstance(value, bool), "true or false"),
        "texts": (_is_list_of(str, value), "a list of strings"),
        "choice": (is_text and value in setting.choices, f"one of {', '.join(setting.choices)}"),
        "text": (is_text, "a string that is not empty"),
        "address": (is_text, "a string that is not empty"),
        "path": (isinstance(value, str | Path) and bool(str(value)), "a string that is not empty"),
        "table": (isinstance(value, dict), f"a table; start it with [{setting.key}.NAME]"),
        "certificate": (_is_certificate(value), "a table of two files: { cert = FILE, key = FILE }"),
        "tables": (_is_list_of(dict, value), f"a list of tables; start each with [[{setting.key}]]"),
    }
    is_right, wanted = checks[setting.kind]
    if not is_right:
        raise BadSettings(f"{origin}: {setting.key} must be {wanted}")
    if setting.kind in ("texts", "tables"):
        return tuple(cast("list[Any]", value))
    if setting.kind == "certificate":
        files = cast("dict[str, str]", value)
        return CertificateFiles(Path(files["cert"]), Path(files["key"]))
    return Path(cast("str", value)) if setting.kind == "path" else value


def _is_certificate(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    files = cast("dict[str, Any]", value)
    return set(files) == {"cert", "key"} and all(isinstance(file, str) and file for file in files.values())


def _is_list_of(kind: type, value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(item, kind) for item in cast("list[Any]", value)
    )
