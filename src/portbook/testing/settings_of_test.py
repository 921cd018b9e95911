"""The settings of a test, and how they differ from those of a server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, cast

from portbook.settings import Settings, by_key, load_settings
from portbook.stores.caller_keys import AllowedKey, digest_of_key
from portbook.tools.toolset import Toolset

__all__ = ["NamedCallers", "Source", "key_of", "settings_of_test"]

# What `net.override_fetch` would open a connection for.
_REMOTE: Final = re.compile("https?:", re.IGNORECASE)

# A toolset, or where one is: a Python file or a module's name.
Source = Toolset | str | PathLike[str]

# Names of callers, each with the patterns of the tools that it may call.
NamedCallers = Mapping[str, Sequence[str]] | Iterable[str]


def key_of(caller: str) -> str:
    """Return the key that a caller has in tests."""
    return f"key of {caller}"


def settings_of_test(
    sources: Sequence[Source],
    config: str | PathLike[str] | None,
    settings: Mapping[str, Any] | None,
    policy: Mapping[str, Any] | None,
    callers: NamedCallers,
    environ: Mapping[str, str],
) -> Settings:
    """Return the settings of a test: its own, and defaults that leave out the machine around it.

    Raises `BadSettings` for what cannot be used.
    """
    flags: dict[str, Any] = {"docs.enabled": False, "approvals.wait_s": 0}
    rules = by_key({"policy": policy or {}}, "policy=")
    flags |= by_key(settings or {}, "settings=") | rules
    flags["store.path"] = ":memory:"
    if sources:
        named = [fspath(source) for source in sources if not isinstance(source, Toolset)]
        flags["python.toolsets"] = named
    file = None if config is None else Path(config)
    loaded = load_settings(file, environ, flags, None, lambda key: "policy=" if key in rules else "settings=")
    if loaded.asset_schemas is None and loaded.asset_examples is None and loaded.assets_enabled is None:
        loaded = loaded._replace(assets_enabled=False)  # they would be looked for around the test
    known = [key._replace(sha256=digest_of_key(key_of(key.name))) for key in loaded.allowed_keys]
    _require_local(loaded)
    return loaded._replace(allowed_keys=(*known, *_keys(callers)))


def _require_local(settings: Settings) -> None:
    """Raise `BadSettings` where the settings would have something fetched."""
    if _REMOTE.match(settings.schema_override_uri or ""):
        sentence = "is fetched over the network, which tests do not use; name a file"
        raise settings.complain(("schema_override_uri",), sentence)


def _keys(callers: NamedCallers) -> tuple[AllowedKey, ...]:
    given: Any = callers
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(
            'callers= is a list of names, or a mapping of names to patterns: ["ada"] or {"ada": ["orders.*"]}'
        )
    patterns: dict[str, Sequence[str]] = dict.fromkeys(callers, ("*",))
    if isinstance(callers, Mapping):
        patterns |= cast("Mapping[str, Sequence[str]]", callers)
    tables = [
        {
            "name": name,
            "sha256": digest_of_key(key_of(name)),
            "tools": (tools,) if isinstance(tools, str) else tools,
        }
        for name, tools in patterns.items()
    ]
    return load_settings(None, {}, {"keys.allow": tables}, None, lambda _: "callers=").allowed_keys
