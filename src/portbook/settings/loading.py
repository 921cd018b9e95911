"""Settings as values: read from flags, variables and the file, checked, converted, and merged."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from portbook.globs import problem_of
from portbook.policy.decision_limits_rules_and_remedy import LIMIT_NAMES, Limits
from portbook.settings.bad_settings import BadSettings, ProblemList
from portbook.settings.declared_settings import SETTINGS, CertificateFiles, Setting
from portbook.stores.caller_keys import ANONYMOUS, OPERATOR, AllowedKey
from portbook.text.did_you_mean import did_you_mean
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple
from portbook.tools.tool_names import ToolNames

if TYPE_CHECKING:
    from portbook.settings.toml_file import TomlFile

__all__ = ["CONFIG_NAME", "Settings", "by_key", "load_settings", "value_from_text", "value_of", "with_policy"]

CONFIG_NAME: Final = "portbook.toml"

Mode = Literal["enforce", "warn", "off"]

_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
_SECTIONS: Final = frozenset(key.split(".")[0] for key in _BY_KEY if "." in key)
_SCHEME: Final = late_pattern(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Settings(NamedTuple):
    """The value of every setting. `SETTINGS` says what each one means."""

    schema_override_uri: str | None
    schema_override_revision: str
    schema_override_sha256: str | None
    host: str
    port: int
    worker_processes: int | Literal["auto"]
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    socket: Path | None
    tls: CertificateFiles | None
    trusted_proxies: tuple[str, ...]
    legacy_sse: bool
    shared: bool
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
    checkpoint_s: int
    audit_key: Path | None
    ship: Literal["postgresql", "syslog", "otlp"] | None
    ship_to: str | None
    ship_ca: Path | None
    ship_authorization: str | None
    store_path: Path
    store_url: str | None
    store_direct_url: str | None
    store_lease_s: int
    toolsets: tuple[str, ...]
    timeout_ms: int
    tool_threads: int
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
    rate_counting: Literal["process", "leased", "exact"] | None
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
    mcp_tables: dict[str, Any]
    more_toolsets: tuple[str, ...] = ()
    """Those that the command line names, beside those of the file."""
    config: Path | None = None
    """The settings file, if there was one."""
    is_given: bool = False
    """Whether that file sets anything."""
    file: TomlFile | None = None
    """What that file holds, and where."""
    origins: Mapping[str, str] = MappingProxyType({})
    """Where each setting is given that does not come from that file, by its key."""

    @property
    def is_shared(self) -> bool:
        """Return whether several processes serve the same callers with one store."""
        return self.shared or self.worker_processes != 1 or self.store_url is not None

    @property
    def folder(self) -> Path:
        """Return the folder in which relative paths of the file start: its own."""
        return Path() if self.config is None else self.config.parent

    def place_of(self, *path: str | int) -> str:
        """Return where a key is given, as decisions and records name it: flag, variable, or file and line."""
        if origin := self._origin(path):
            return origin
        return (
            "default"
            if self.config is None or self.file is None
            else f"{self.config.name}:{self.file.line(path)}"
        )

    def position_of(self, *path: str | int) -> str:
        """Return where a key is given, as messages begin: its flag, variable, or file, line and column."""
        return self._origin(path) or ("default" if self.file is None else self.file.place(path))

    def opening(self, *path: str | int) -> str:
        """Return how a message about a key begins: with where it is given, or nothing for a default."""
        place = self.position_of(*path)
        return "" if place == "default" else f"{place}: "

    def complain(self, path: tuple[str | int, ...], sentence: str) -> BadSettings:
        """Return the exception for a key that cannot be used, with the place where it is given."""
        return BadSettings(f"{self.position_of(*path)}: {dotted(path)} {sentence}")

    def _origin(self, path: tuple[str | int, ...]) -> str | None:
        """Return where a key is given outside of the file; without a file, a section has that of its keys."""
        whole = f"{dotted(path)}."
        for key, origin in self.origins.items():
            if whole.startswith((f"{key}.", f"{key}[")) or (self.file is None and key.startswith(whole)):
                return origin
        return None


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
    file, given = None, {}
    origins: dict[str, str] = {}
    problems = ProblemList(BadSettings)
    if config is not None:
        values["store.path"] = config.parent / values["store.path"]
        from portbook.settings.toml_file import read_toml  # late: only where there is a file

        file = read_toml(config, config.name if config.parent == folder else str(config))
        given = _values_in(file, config.parent, problems)
        values.update(given)
    for setting in SETTINGS:
        if setting.env and setting.env in environ and not _is_unset(setting.env, environ):
            origins[setting.key] = origin = f"${setting.env}"
            with problems:
                values[setting.key] = value_from_text(setting, environ[setting.env], origin)
    for key, value in flags.items():
        if value is not None:
            origins[key] = origin = flags_from(key)
            with problems:
                values[key] = value_of(_BY_KEY[key], value, partial(_flag_place, origin))
    limits = Limits(**{name: values.pop(f"policy.{name}") for name in LIMIT_NAMES})
    named_values = {_BY_KEY[key].field: value for key, value in values.items()}
    settings = Settings(
        **named_values, limits=limits, config=config, is_given=bool(given), file=file, origins=origins
    )
    if problems.texts():
        raise BadSettings(*problems.texts(), rest=settings)
    return settings


def with_policy(settings: Settings, file: TomlFile) -> Settings:
    """Return `settings` with the policy of `file` in place of that of their own file.

    What variables and flags set stays. Other tables than `policy` are not read.

    Raises `BadSettings` for an unknown key or a value of the wrong type.
    """
    problems = ProblemList(BadSettings)
    policy = file._replace(document={"policy": file.document.get("policy", {})})
    given = _values_in(policy, settings.folder, problems)
    problems.raise_all()
    fixed = {key for key in settings.origins if key.startswith("policy.")}
    values = {setting.key: setting.default for setting in SETTINGS} | given
    limits = settings.limits._replace(
        **{name: values[f"policy.{name}"] for name in LIMIT_NAMES if f"policy.{name}" not in fixed}
    )
    rules = settings.policy_rules if "policy.rules" in fixed else values["policy.rules"]
    config = settings.config or Path(CONFIG_NAME)
    return settings._replace(limits=limits, policy_rules=rules, config=config, file=file)


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


def _values_in(file: TomlFile, folder: Path, problems: ProblemList) -> dict[str, Any]:
    """Return the settings of a file by their keys, without those that have a problem."""
    values: dict[str, Any] = {}
    for path, value in _flatten(file.document):
        with problems:
            key = ".".join(path)
            if len(path) == 1 and key in _SECTIONS:
                raise BadSettings(f"{file.place(path)}: {key} must be a table; start it with [{key}]")
            setting = _BY_KEY.get(key)
            if setting is None:
                raise _unknown(file.place(path), key)
            converted = value_of(setting, value, partial(_place_below, file, path))
            values[key] = _from_folder(setting, converted, folder)
    return values


def _flag_place(origin: str, *_: str | int) -> str:
    return origin


def _place_below(file: TomlFile, path: tuple[str, ...], *below: str | int) -> str:
    return file.place((*path, *below))


def _flatten(document: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path of every setting, with its value; a section that is no table has its own."""
    for key, value in document.items():
        if key in _SECTIONS and isinstance(value, dict):
            for name, below in cast("dict[str, Any]", value).items():
                yield (key, name), below
        else:
            yield (key,), value


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


# Checks and converts the value of one setting.


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


# Reads `[[keys.allow]]`: the keys of callers that the settings file has.

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
