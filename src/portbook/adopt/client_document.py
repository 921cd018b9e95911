"""A client's configuration as text: its servers, and the same text with one entry in their place.

Only the text of entries is replaced; all else stays as it is, byte for byte: comments, order, unknown keys,
tabs, CRLF, a byte order mark, a missing final newline. Every edit is read back and compared with what it
should be, so a text that is written in a way that these modules do not know is left alone. Pure: no I/O.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from portbook.adopt.json_toml_yaml_edits import (
    NotReadable,
    edit_json,
    edit_toml,
    edit_yaml,
    parse_json,
    parse_yaml_text,
)
from portbook.exports.client_table import KeyPath, TextForm
from portbook.model import JSON, JSONObject

__all__ = ["Entry", "NotReadable", "decoded", "edited", "entries_at", "names_without_entry", "parsed"]

_BYTE_ORDER_MARK: Final = "\ufeff"
_CANNOT_EDIT: Final = "it is written in a way that cannot be edited safely"


class Entry(NamedTuple):
    """An entry to put into a document."""

    name: str
    value: JSONObject


def decoded(data: bytes) -> str:
    """Return a file as text; a byte order mark stays in it.

    Raises `NotReadable` for what is not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NotReadable("it is not UTF-8") from None


def parsed(text: str, form: TextForm) -> JSON:
    """Return the values of a document.

    Raises `NotReadable` where it cannot be read.
    """
    text = text.removeprefix(_BYTE_ORDER_MARK)
    if form == "json":
        return parse_json(text) if text.strip() else {}
    if form == "yaml":
        return parse_yaml_text(text)
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError:
        raise NotReadable("it is not TOML") from None


def entries_at(whole: JSON, path: KeyPath) -> dict[str, JSONObject]:
    """Return the servers at a place of a document by name; of a list, by the member `name` of its items."""
    found = _at(whole, path)
    if isinstance(found, list):
        return {
            name: each for each in found if isinstance(each, dict) and (name := _name_in(each)) is not None
        }
    if not isinstance(found, dict):
        return {}
    return {name: each for name, each in found.items() if isinstance(each, dict)}


def names_without_entry(whole: JSON, path: KeyPath) -> list[str]:
    """Return what stands at a place of a document and is no server: no object, or nameless in a list."""
    found = _at(whole, path)
    if isinstance(found, list):
        return [f"entry {place}" for place, each in enumerate(found, 1) if _name_in(each) is None]
    members = found.items() if isinstance(found, dict) else ()
    return [name for name, each in members if not isinstance(each, dict)]


def _name_in(entry: JSON) -> str | None:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else None


def _at(whole: JSON, path: KeyPath) -> JSON:
    for key in path:
        whole = whole.get(key) if isinstance(whole, dict) else None
    return whole


def edited(text: str, form: TextForm, path: KeyPath, remove: Collection[str], *put: Entry) -> str:
    """Return a document without the entries `remove`, and with `put` in the place of the first of them.

    Raises `NotReadable` where that cannot be done without touching anything else.
    """
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    body = text.removeprefix(mark)
    edit = {"json": edit_json, "toml": edit_toml, "yaml": edit_yaml}[form]
    try:
        changed = edit(body, path, remove, *put)
    except TypeError:  # TOML has dates and times, which JSON does not have
        raise NotReadable(_CANNOT_EDIT) from None
    try:
        after = parsed(changed, form)
    except NotReadable:
        raise NotReadable(_CANNOT_EDIT) from None
    if not _is_expected(parsed(body, form), after, path, remove, put):
        raise NotReadable(_CANNOT_EDIT)
    return mark + changed


def _is_expected(
    before: JSON, after: JSON, path: KeyPath, remove: Collection[str], put: Iterable[Entry]
) -> bool:
    """Return whether only these entries differ."""
    wanted = {name: value for name, value in entries_at(before, path).items() if name not in remove}
    wanted |= {each.name: each.value for each in put}
    return _without(before, path) == _without(after, path) and entries_at(after, path) == wanted


def _without(value: JSON, path: KeyPath) -> JSON:
    """Return a document without what stands at a place; what is empty without it counts as missing."""
    if not path or not isinstance(value, dict):
        return None
    rest: Mapping[str, JSON] = {key: each for key, each in value.items() if key != path[0]}
    below = _without(value.get(path[0]), path[1:])
    return {**rest, path[0]: below} if below else dict(rest)
