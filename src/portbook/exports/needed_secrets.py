"""Which secrets the settings refer to: variables that a server needs, files that must not travel. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

__all__ = ["NeededSecrets", "needed_secrets"]


class NeededSecrets(NamedTuple):
    """The sources of secrets that settings name, each once, in the order of the settings."""

    variables: tuple[str, ...]
    files: tuple[str, ...]


def needed_secrets(tables: Mapping[str, Any]) -> NeededSecrets:
    """Return what `{ env = "NAME" }` and `{ file = "path" }` name, anywhere below `tables`."""
    found = list(_sources(tables))
    variables, files = (
        tuple(dict.fromkeys(name for kind, name in found if kind == wanted)) for wanted in ("env", "file")
    )
    return NeededSecrets(variables, files)


def _sources(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        if len(table) == 1:
            [(key, name)] = table.items()
            if key in ("env", "file") and isinstance(name, str):
                yield key, name
                return
        for below in table.values():
            yield from _sources(below)
    elif isinstance(value, list | tuple):
        for below in cast("list[Any]", value):
            yield from _sources(below)
