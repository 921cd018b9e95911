"""The section of `portbook.lock` about MCP servers: their approved definitions, whole, part by part.

    {"mcp": {"github": {"tools": {"create_issue": {"description": "…", "inputSchema": {…}}}}}}

It is the only authority for what is approved. Members are sorted and a text of several lines is a list of
them, so that a review shows the line that changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from portbook.model import JSON, JSONObject
from portbook.pins.pinned_definitions import PinnedKind, ServerDefinitions, parts_of
from portbook.schema.violation_wording import whole_pointer
from portbook.stores.lock_file import LOCK_NAME, LockFile, LockSection, change_section

__all__ = ["PinLock", "WatchedPinLock", "approve", "approve_definitions"]

_SECTION: Final = "mcp"
_MEMBERS: Final = ("instructions", "prompts", "tools")

# Parts that are texts, and may be lists of lines.
_TEXTS: Final = frozenset({"title", "description", "instructions"})
_TYPES: Final[Mapping[str, type]] = {
    "inputSchema": dict,
    "outputSchema": dict,
    "annotations": dict,
    "execution": dict,
    "icons": list,
    "arguments": list,
    "_meta": dict,
}


@dataclass(frozen=True, slots=True)
class PinLock:
    """The approved definitions of all servers, by alias."""

    servers: Mapping[str, ServerDefinitions] = field(default_factory=dict[str, ServerDefinitions])

    @classmethod
    def read(cls, folder: Path) -> PinLock:
        """Return the pins in the lock of a folder; without a file, none.

        Raises `BadLock` where the file cannot be read.
        """
        return cls.of_section(LockFile.read(folder).section(_SECTION))

    @classmethod
    def of_section(cls, section: LockSection) -> PinLock:
        """Return the pins in a section.

        Raises `BadLock` for an entry that is none.
        """
        return cls({alias: _server(section, alias, entry) for alias, entry in section.entries.items()})


class WatchedPinLock:
    """The pins in the lock of a folder, read again when it has changed, so that a review counts at once."""

    def __init__(self, folder: Path) -> None:
        """Read the lock. Raises `BadLock` where it cannot be used."""
        self._folder = folder
        self._stamp = self._stamped()
        self.pins = PinLock.read(folder)

    def has_changed(self) -> bool:
        """Return whether the lock approves something else than before, and read it if so.

        Raises `BadLock` where it cannot be read, once: what was approved before stays approved.
        """
        stamp = self._stamped()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        before, now = self.pins, PinLock.read(self._folder)
        self.pins = now
        return before != now

    def approve(self, servers: Mapping[str, ServerDefinitions | None]) -> None:
        """Write approved definitions; `read_again` has them then. Raises as the function does."""
        approve(self._folder, servers)

    def read_again(self) -> None:
        """Read what is approved now. Raises `BadLock` where it cannot be read."""
        self._stamp = self._stamped()
        self.pins = PinLock.read(self._folder)

    def _stamped(self) -> tuple[int, int, int] | None:
        """Return what tells one state of the file from the next: each write makes a new file."""
        try:
            found = (self._folder / LOCK_NAME).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


def approve(folder: Path, servers: Mapping[str, ServerDefinitions | None]) -> None:
    """Write the approved definitions of some servers; None removes a server, and others stay as they are.

    Raises `BadLock` where the file cannot be read, `OSError` where it cannot be written.
    """

    def change(section: LockSection) -> JSONObject:
        PinLock.of_section(section)  # what is written back must be readable
        entries = dict(section.entries)
        for alias, definitions in servers.items():
            if definitions is None:
                entries.pop(alias, None)
            else:
                entries[alias] = _written(definitions)
        return _readable(section, entries)

    change_section(folder, _SECTION, change)


def approve_definitions(
    folder: Path, alias: str, chosen: Mapping[tuple[PinnedKind, str], JSONObject | None]
) -> None:
    """Write some definitions of a server, by kind and name; None removes one, and others stay as they are.

    Whoever approves others at the same time loses nothing.

    Raises `BadLock` where the file cannot be read, `OSError` where it cannot be written.
    """

    def change(section: LockSection) -> JSONObject:
        definitions = PinLock.of_section(section).servers.get(alias) or ServerDefinitions()
        for key, parts in chosen.items():
            definitions = definitions.merged(*key, parts)
        return _readable(section, {**section.entries, alias: _written(definitions)})

    change_section(folder, _SECTION, change)


def _readable(section: LockSection, entries: JSONObject) -> JSONObject:
    """Return entries as they are written. Raises `BadLock` for what could not be read again."""
    written: JSONObject = dict(sorted(entries.items()))
    PinLock.of_section(replace(section, entries=written))
    return written


# -- reading


def _server(section: LockSection, alias: str, entry: JSON) -> ServerDefinitions:
    place = whole_pointer((alias,))
    if not isinstance(entry, dict):
        raise section.wrong(place, "must be an object")
    for member in entry:
        if member not in _MEMBERS:
            raise section.wrong(place + whole_pointer((member,)), f"is not one of {', '.join(_MEMBERS)}")
    words = entry.get("instructions")
    return ServerDefinitions(
        _definitions(section, f"{place}/tools", entry.get("tools", {}), is_tool=True),
        _definitions(section, f"{place}/prompts", entry.get("prompts", {})),
        None if words is None else _text(section, f"{place}/instructions", words),
    )


def _definitions(
    section: LockSection, place: str, entries: JSON, *, is_tool: bool = False
) -> dict[str, JSONObject]:
    if not isinstance(entries, dict):
        raise section.wrong(place, "must be an object")
    found: dict[str, JSONObject] = {}
    for name, parts in entries.items():
        here = place + whole_pointer((name,))
        if not isinstance(parts, dict):
            raise section.wrong(here, "must be an object")
        if is_tool and "inputSchema" not in parts:
            raise section.wrong(here, "must have an `inputSchema`")
        found[name] = parts_of({part: _part(section, here, part, value) for part, value in parts.items()})
    return found


def _part(section: LockSection, place: str, part: str, value: JSON) -> JSON:
    here = place + whole_pointer((part,))
    if part in _TEXTS:
        return _text(section, here, value)
    wanted = _TYPES.get(part)
    if wanted is not None and not isinstance(value, wanted):
        raise section.wrong(here, f"must be {'an object' if wanted is dict else 'an array'}")
    return value


def _text(section: LockSection, place: str, value: JSON) -> str:
    lines = value if isinstance(value, list) else [value]
    texts = [line for line in lines if isinstance(line, str)]
    if not texts or len(texts) < len(lines):
        raise section.wrong(place, "must be a string, or an array of lines")
    return "\n".join(texts)


# -- writing


def _written(definitions: ServerDefinitions) -> JSONObject:
    entry: JSONObject = {}
    if definitions.instructions is not None:
        entry["instructions"] = _lines(definitions.instructions)
    for member, found in (("prompts", definitions.prompts), ("tools", definitions.tools)):
        if found:
            entry[member] = {name: _parts(parts) for name, parts in sorted(found.items())}
    return entry


def _parts(parts: JSONObject) -> JSONObject:
    return {
        part: _lines(value) if part in _TEXTS and isinstance(value, str) else _sorted(value)
        for part, value in sorted(parts.items())
    }


def _lines(text: str) -> JSON:
    lines: list[JSON] = [*text.split("\n")]
    return lines if len(lines) > 1 else text


def _sorted(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {name: _sorted(each) for name, each in sorted(value.items())}
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    return value
