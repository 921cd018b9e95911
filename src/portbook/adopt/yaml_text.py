"""YAML in blocks, by indentation, and a text with some entries replaced by one. Pure: no I/O.

Entries are found where they are written as clients write them: a mapping or a list in block style, one key a
line. The caller reads the result back, so a text in a different style is refused, not damaged.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from portbook.adopt.json_text import NotReadable
from portbook.adopt.text_cut import Cut, apply_cuts, newline_of
from portbook.apis.openapi.yaml_reader import NotYAML, parse_yaml
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern

__all__ = ["edit_yaml", "parse_yaml_text"]

_KEY: Final = late_pattern(
    r"""(?P<indent> *)(?P<dash>- +)?(?P<key>"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#:'"-][^:#]*?) *:(?=\s|$)"""
)
_NAME: Final = late_pattern(r"(?P<indent> *)(?:- +)?name *: *(?P<value>[^#\n]*?)\s*(?:#.*)?$")


class _Line(NamedTuple):
    start: int
    text: str

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip(" "))

    @property
    def is_empty(self) -> bool:
        stripped = self.text.strip()
        return not stripped or stripped.startswith("#")


def parse_yaml_text(text: str) -> JSON:
    """Return the values of a document. Raises `NotReadable` where it cannot be read."""
    try:
        return parse_yaml(text.encode()) if text.strip() else {}
    except NotYAML as error:
        raise NotReadable(str(error)) from None
    except ImportError:
        raise NotReadable("YAML needs a library; install portbook[yaml]") from None


def edit_yaml(text: str, path: tuple[str, ...], remove: Collection[str], *put: tuple[str, JSONObject]) -> str:
    """Return the document without some entries at `path`, and with `put` in place of the first.

    Raises `NotReadable` where the place is not found.
    """
    lines = [_Line(at, line) for at, line in _with_places(text)]
    block = _block(lines, path)
    cuts: list[Cut] = []
    is_whole = all(name in remove for name, _ in _entries(block))
    for name, entry in _entries(block):
        if name not in remove:
            continue
        start, end = entry[0].start, entry[-1].start + len(entry[-1].text)
        if put and not cuts:
            ending = "" if text[end - 1 : end] != "\n" else newline_of(text)
            written = newline_of(text).join(_written(entry[0], *each, newline_of(text)) for each in put)
            cuts.append(Cut(start, end, written + ending))
        else:
            cuts.append(Cut(start, end))
    if not put and is_whole and cuts:
        raise NotReadable("nothing would be left of its list of servers; remove the entry by hand")
    return apply_cuts(text, cuts)


def _with_places(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.splitlines(keepends=True):
        yield at, line
        at += len(line)


def _block(lines: list[_Line], path: tuple[str, ...]) -> list[_Line]:
    """Return the lines below a key."""
    for key in path:
        top = min((line.indent for line in lines if not line.is_empty), default=0)
        begins = [at for at, line in enumerate(lines) if line.indent == top and _key(line) == key]
        if len(begins) != 1:
            raise NotReadable("it has no servers at the place where its client reads them")
        lines = _below(lines, begins[0])
    return lines


def _below(lines: list[_Line], at: int) -> list[_Line]:
    """Return the lines that belong to a key; the items of its list may stand at its own indentation."""
    indent = lines[at].indent
    found: list[_Line] = []
    for line in lines[at + 1 :]:
        is_item = line.indent == indent and line.text.lstrip(" ").startswith("- ")
        if not line.is_empty and line.indent <= indent and not is_item:
            break
        found.append(line)
    return found


def _entries(block: list[_Line]) -> Iterator[tuple[str, list[_Line]]]:
    """Yield each entry with its lines, without comments and blank lines after it."""
    full = [line for line in block if not line.is_empty]
    top = full[0].indent if full else 0
    begins = [at for at, line in enumerate(block) if not line.is_empty and line.indent == top]
    for begin, end in zip(begins, [*begins[1:], len(block)], strict=False):
        entry = block[begin:end]
        while entry[-1].is_empty:
            entry = entry[:-1]
        yield _name(entry), entry


def _name(entry: list[_Line]) -> str:
    if not entry[0].text.lstrip(" ").startswith("- "):
        return _key(entry[0]) or ""
    inner = entry[0].indent + 2
    for line in entry:
        found = _NAME.match(line.text)
        if found and (line is entry[0] or line.indent >= inner):
            return _scalar(found["value"])
    return ""


def _key(line: _Line) -> str | None:
    found = None if line.is_empty else _KEY.match(line.text)
    return None if found is None or found["dash"] else _scalar(found["key"])


def _scalar(text: str) -> str:
    try:
        value = parse_yaml(text.encode())
    except NotYAML:
        return text
    return value if isinstance(value, str) else text.strip()


def _written(first: _Line, name: str, value: JSONObject, newline: str) -> str:
    """Return an entry as text, indented as the one that it replaces; inner values are in JSON's style."""
    indent = " " * first.indent
    is_item = first.text.lstrip(" ").startswith("- ")
    members = [f"{key}: {json.dumps(each, ensure_ascii=False)}" for key, each in value.items()]
    if is_item:
        lines = [f"{indent}{'- ' if not at else '  '}{member}" for at, member in enumerate(members)]
    else:
        lines = [f"{indent}{json.dumps(name)}:", *(f"{indent}  {member}" for member in members)]
    return newline.join(lines)
