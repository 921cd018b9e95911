"""Reads YAML 1.2 as JSON values: `NO` and `18_24` are texts, and `200:` is the key "200".

The library copies what an alias stands for, so a few lines of nested aliases could fill all memory. What they
expand to is estimated before they are read. Merge keys (`<<`) of YAML 1.1 are understood, because documents
use them. Of two equal keys, the library keeps the last one in silence. Pure: no I/O.

One value that JSON does not have must not cost the whole document: a tag is ignored, and what it tags is
read; `.nan` and `.inf` are null. The library refuses some values that are common: these are mended, and the
document is read once more. A key that is a number has the text of its value: `1.10:` is the key "1.1",
because the library does not give the text as it is written.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final, cast

from portbook.model import JSON

__all__ = ["NotYAML", "parse_yaml"]

# What all aliases together may expand to: the size limit of a document.
_MAX_EXPANDED: Final = 67_108_864
# How many anchors and aliases are compared: a second's work, and more than any document has.
_MAX_PAIRS: Final = 10_000_000
# A name after & or *, where YAML can have an anchor or an alias.
_ANCHOR: Final = re.compile(r"(?:(?<=[\s\[{,:\"'?\]}-])|^)&([^\s,\[\]{}]+)", re.MULTILINE)
_ALIAS: Final = re.compile(r"(?:(?<=[\s\[{,:\"'?\]}-])|^)\*([^\s,\[\]{}]+)", re.MULTILINE)
# Where the library found an error.
_PLACE: Final = re.compile(r"line ([0-9]+) column ([0-9]+)$")
# JSON's escape for half of a character beyond 16 bits. After an even number of backslashes, it is none.
_HALF: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u(?=[dD][89a-fA-F][0-9a-fA-F]{2})")
# Characters for private use. One that the document has nowhere marks the halves; few documents have even one.
_MARKS: Final = range(0xE000, 0xE040)
# Comments and directives before the marker of a document.
_BEFORE_MARKER: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n|%[^\n]*\n)*(?=---)")
_OWN_TAG: Final = "tag:portbook,2026:"
_PLAIN_TAGS: Final = frozenset({"int", "float", "bool", "null"})
# Not `-`, `---` and `...`, which are a list, a document and the end of one.
_PLAIN: Final = re.compile(r"[-+.]*[~0-9A-Za-z][-+.~0-9A-Za-z]*", re.ASCII)
_WORDS: Final = {None: "null", True: "true", False: "false"}


class NotYAML(ValueError):
    """A text that cannot be read as one YAML document of JSON values; the message says why."""


def parse_yaml(data: bytes) -> JSON:
    """Return the values of a YAML document.

    Raises `NotYAML` where it is none, `ImportError` where the library is not installed.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotYAML("not UTF-8") from None
    if _expanded_size(text) > _MAX_EXPANDED:
        raise NotYAML("its aliases expand to too much; write out what they stand for")
    found, mark = _documents(text)
    if len(found) != 1:
        raise NotYAML(f"must hold one document, and holds {len(found)}")
    value = _as_json(found[0])
    return value if mark is None else _unmarked(value, mark)


def _documents(text: str) -> tuple[list[Any], str | None]:
    """Return the documents in a text, and the character that marks halves of characters, if there are any."""
    import yaml12

    try:
        return yaml12.parse_yaml(text, multi=True), None
    except (ValueError, RecursionError) as error:
        place = _PLACE.search(str(error))  # the rest of the library's message may quote the document
    mended, mark = _marked(text)
    try:
        return yaml12.parse_yaml(_with_own_tags(mended), multi=True), mark
    except (ValueError, RecursionError):
        where = "" if place is None else f" (line {place[1]}, column {place[2]})"
        raise NotYAML(f"not YAML 1.2{where}") from None


def _with_own_tags(text: str) -> str:
    """Return a text in which `!!int` is a different tag: it may mark what is a number in YAML 1.1 alone."""
    before = _BEFORE_MARKER.match(text)
    if before is None:
        return f"%TAG !! {_OWN_TAG}\n---\n{text}"
    return f"{before[0]}%TAG !! {_OWN_TAG}\n{text[before.end() :]}"


def _marked(text: str) -> tuple[str, str | None]:
    """Return a document with a mark in each escape for half of a character, which the library refuses.

    Between double quotes, the mark is read as a character. Everywhere else, nothing is an escape, and the
    mark stays as it is written. So the values tell the two apart, whatever is quoted how.
    """
    if _HALF.search(text) is None:
        return text, None
    lowered = text.lower()
    for code in _MARKS:
        written = (chr(code), f"\\u{code:x}", f"\\u{code:08x}")
        if not any(form in lowered for form in written):
            return _HALF.sub(rf"\1\\u{code:x}", text), chr(code)
    return text, None


def _unmarked(value: JSON, mark: str) -> JSON:
    """Return a value whose texts have whole characters, and U+FFFD for a half, in place of what is marked."""
    halves = re.compile(rf"(?:{mark}[dD][89a-fA-F][0-9a-fA-F]{{2}})+")
    written = f"\\u{ord(mark):x}"

    def text_of(text: str) -> str:
        return halves.sub(lambda found: _joined(found[0].split(mark)[1:]), text).replace(written, "\\u")

    def value_of(each: JSON) -> JSON:
        if isinstance(each, str):
            return text_of(each)
        if isinstance(each, list):
            return [value_of(item) for item in each]
        if isinstance(each, dict):
            return {text_of(key): value_of(item) for key, item in each.items()}
        return each

    return value_of(value)


def _joined(halves: list[str]) -> str:
    units = b"".join(int(half, 16).to_bytes(2, "big") for half in halves)
    return units.decode("utf-16-be", "replace")


def _as_json(value: Any) -> JSON:
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        merged = _merged(members.get("<<"))
        own = {_key(key): _as_json(item) for key, item in members.items() if key != "<<"}
        if len(own) < len(members) - ("<<" in members):
            raise NotYAML("two keys of one mapping are the same text")
        return {**merged, **own}
    if isinstance(value, list):
        return [_as_json(item) for item in cast("list[Any]", value)]
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _tagged(value.tag, value.value)  # the library wraps what has a tag that it does not know


def _tagged(tag: str, value: Any) -> JSON:
    """Return what is tagged; a plain word is the value that it has without the tag, where that names one."""
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) is not None
    if is_plain and tag.removeprefix(_OWN_TAG) in _PLAIN_TAGS:
        (value,), _ = _documents(value)
    return _as_json(value)


def _merged(value: Any) -> dict[str, JSON]:
    """Return the members that a merge key adds; of several mappings, the first one decides."""
    found: dict[str, JSON] = {}
    for each in cast("list[Any]", value if isinstance(value, list) else [value]):
        members = _as_json(each)
        if isinstance(members, dict):
            found = {**members, **found}
    return found


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return _WORDS[key]
    if isinstance(key, int | float):
        return str(key)
    if hasattr(key, "value"):  # the library wraps a key that has a tag, or is a list or a mapping
        return _key(key.value)
    raise NotYAML("has a key that is not a text")


def _expanded_size(text: str) -> int:
    """Return an upper bound of what the aliases of a document expand to.

    Everything that may belong to an anchor counts as its content. An alias inside counts as much as the
    content of its own anchor, which stands before it.
    """
    anchors = list(_ANCHOR.finditer(text))
    if not anchors:
        return 0
    names = {anchor[1] for anchor in anchors}
    aliases = [alias for alias in _ALIAS.finditer(text) if alias[1] in names]
    if len(anchors) * len(aliases) > _MAX_PAIRS:
        return _MAX_EXPANDED + 1
    sizes: dict[str, int] = {}
    ends = [_end_of_content(text, anchor) for anchor in anchors]
    # In the order of their ends: an anchor is complete before an alias can stand for it.
    for end, anchor in sorted(zip(ends, anchors, strict=True), key=lambda pair: (pair[0], -pair[1].start())):
        start = anchor.end()
        inside = sum(sizes.get(alias[1], 0) for alias in aliases if start <= alias.start() < end)
        sizes[anchor[1]] = max(sizes.get(anchor[1], 0), min(end - start + inside, _MAX_EXPANDED + 1))
    return sum(sizes.get(alias[1], 0) for alias in aliases)


def _end_of_content(text: str, anchor: re.Match[str]) -> int:
    """Return where the content of an anchor has ended for certain."""
    line_start = text.rfind("\n", 0, anchor.start()) + 1
    line_end = text.find("\n", anchor.end())
    if line_end < 0:
        return len(text)
    before, after = text[line_start : anchor.start()], text[anchor.end() : line_end]
    if after.count("[") > after.count("]") or after.count("{") > after.count("}"):
        return len(text)  # brackets that go on: indentation says nothing inside them
    indent = len(before) - len(before.lstrip(" "))
    # What stands below a first word may have its indentation; below a key, only a list may.
    allowed = r" *" if not before.strip() else r"-(?:\s|$)"
    ending = re.compile(rf"^(?! *$)(?! {{{indent}}}(?: |{allowed}))", re.MULTILINE)
    found = ending.search(text, line_end + 1)
    return len(text) if found is None else found.start()
