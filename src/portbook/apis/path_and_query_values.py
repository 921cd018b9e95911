"""Values as text outside of a JSON body: OpenAPI's styles, which are those of RFC 6570. Pure: no I/O.

Two forms cover all places. `expanded` returns one text, for a path segment, a header or a cookie. `pairs_of`
yields names and values, for a query or a form.

Null is left out, in a list and in an object, too: RFC 6570 (2.3) has it as undefined, and the text `null`
would be a value that nobody gave. JSON alone keeps it.

A value is encoded so that the server reads the same value: also where `allowReserved` lets characters
through, those that would end a value or begin another one are encoded. A list whose items could not be told
apart cannot be sent: nothing encodes a comma in a header, and an encoded pipe separates items as a plain one.

An argument in a path stays in its segment, and no name in a query reaches a reserved one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, product
from typing import Final, NamedTuple, cast
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from portbook.canonical import json_bytes
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.schema.violation_wording import escape_pointer
from portbook.tools.http_operation import Parameter, Style

__all__ = [
    "AmbiguousText",
    "Encode",
    "Pair",
    "TakenNames",
    "as_form_text",
    "as_is",
    "as_reserved_text",
    "as_uri_text",
    "expanded",
    "pairs_of",
    "plain_text",
    "present",
    "segment_of",
    "unsendable",
    "without_nulls",
]

# The refusal of an argument that cannot be sent in its place.


def unsendable(place: Iterable[str], sentence: str) -> Refused:
    """Return the refusal of the value at `place` among the arguments; `sentence` follows its pointer."""
    return Refused(Reason.BAD_ARGUMENTS, (Finding(escape_pointer(tuple(place)), sentence, "http", ""),))


Encode = Callable[[str], str]

# Reserved characters (RFC 3986, 2.2) that end nothing in a query. Not among them: # & + ; [ ] and the percent
# sign; some servers take a semicolon for an ampersand.
_HARMLESS: Final = ":/?@!$'()*,="
# Every ASCII character, encoded.
_ENCODED: Final = [quote(chr(code), safe="") for code in range(128)]
_WORDS: Final = {
    ",": "a comma", " ": "a space", "|": "a pipe", ".": "a dot", ";": "a semicolon", "=": "an equals sign",
}  # fmt: skip
_SEPARATORS: Final = {Style.COMMA: ",", Style.PAIRS: ",", Style.SPACE: " ", Style.PIPE: "|"}


class AmbiguousText(Exception):
    """A list or an object that its reader would split in other places; the message follows its pointer."""

    def __init__(self, separator: str) -> None:
        super().__init__(
            f"has {_WORDS[separator]} inside an item, and the API would read one item as two; leave it out"
        )


def as_is(text: str) -> str:
    """Return `text` unchanged, for headers and multipart bodies."""
    return text


def as_uri_text(text: str) -> str:
    """Encode all but the unreserved characters of a URI."""
    # One step for ASCII: `quote` takes one in Python for each character.
    return text.translate(_ENCODED) if text.isascii() else quote(text, safe="")


def as_reserved_text(text: str) -> str:
    """Encode a value of `allowReserved`."""
    return quote(text, safe=_HARMLESS)


def as_form_text(text: str) -> str:
    """Encode a name or a value of `application/x-www-form-urlencoded`: a space is a plus sign."""
    return quote_plus(text)


def plain_text(value: JSON) -> str:
    """Return a string unchanged, all other values as JSON."""
    return value if isinstance(value, str) else json_bytes(cast("object", value)).decode()


def present(items: list[JSON]) -> list[JSON]:
    """Return the items of a list that are not null."""
    return [item for item in items if item is not None]


def _present_members(members: JSONObject) -> list[tuple[str, JSON]]:
    """Return the members of an object that are not null."""
    return [(key, item) for key, item in members.items() if item is not None]


def without_nulls(value: JSON, style: Style) -> JSON:
    """Return what is written of `value`: a list or an object without its nulls, which only JSON keeps."""
    if style is Style.JSON:
        return value
    if isinstance(value, list):
        return present(value)
    return dict(_present_members(value)) if isinstance(value, dict) else value


# -- one text


class _Expansion(NamedTuple):
    """A row of RFC 6570's table of expansions."""

    first: str = ""
    separator: str = ","
    is_named: bool = False
    is_exploded: bool = False


_EXPANSIONS: Final = {
    Style.PAIRS: _Expansion(is_exploded=True),
    Style.LABEL: _Expansion(".", "."),
    Style.LABEL_EXPLODED: _Expansion(".", ".", is_exploded=True),
    Style.MATRIX: _Expansion(";", ";", is_named=True),
    Style.MATRIX_EXPLODED: _Expansion(";", ";", is_named=True, is_exploded=True),
}
_SIMPLE: Final = _Expansion()


def expanded(name: str, value: JSON, style: Style, encode: Encode) -> str:
    """Return `value` as one text in `style`; every style that is not in RFC 6570's table counts as simple.

    Raises `AmbiguousText` where its items could not be told apart.
    """
    if style is Style.JSON:
        return encode(json_bytes(value).decode())
    rule = _EXPANSIONS.get(style, _SIMPLE)
    if isinstance(value, dict):
        members = [(encode(key), encode(plain_text(item))) for key, item in _present_members(value)]
        if rule.is_exploded:
            if any("=" in key for key, _ in members):
                raise AmbiguousText("=")
            return rule.first + _joined([f"{key}={text}" for key, text in members], rule.separator)
        return _named(name, _joined([text for member in members for text in member]), rule)
    if isinstance(value, list):
        items = [encode(plain_text(item)) for item in present(value)]
        if rule.is_exploded:
            named = [f"{name}={text}" for text in items] if rule.is_named else items
            return rule.first + _joined(named, rule.separator)
        return _named(name, _joined(items), rule)
    return _named(name, encode(plain_text(value)), rule)


def _joined(texts: list[str], separator: str = ",", between: str | None = None) -> str:
    """Return texts with a separator between them, which is written as `between`."""
    written = between or separator
    if any(written in text for text in texts):
        raise AmbiguousText(separator)
    return written.join(texts)


def _named(name: str, text: str, rule: _Expansion) -> str:
    if not rule.is_named:
        return rule.first + text
    return f"{rule.first}{name}={text}" if text else f"{rule.first}{name}"


# -- pairs of names and values


class Pair(NamedTuple):
    """One name and its value, in a query or a form."""

    name: str
    """Not yet encoded."""
    members: tuple[str, ...]
    """The way from the argument to the value; empty where the name is the parameter's own."""
    text: str
    """The value, encoded."""


def pairs_of(name: str, value: JSON, style: Style, encode: Encode) -> Iterator[Pair]:
    """Yield the pairs of `value`. Null, an empty list and an empty object have none, as in RFC 6570, 2.3.

    Raises `AmbiguousText` where items of one pair could not be told apart.
    """
    if value is None:
        return
    if style is Style.JSON or (style is Style.REPEAT and isinstance(value, dict)):
        yield Pair(name, (), encode(json_bytes(value).decode()))
    elif style is Style.DEEP:
        yield from _deep_pairs(name, (), value, encode)
    elif isinstance(value, list | dict):
        yield from _joined_pairs(name, value, style, encode)
    else:
        yield Pair(name, (), encode(plain_text(value)))


def _joined_pairs(name: str, value: list[JSON] | JSONObject, style: Style, encode: Encode) -> Iterator[Pair]:
    separator = _SEPARATORS.get(style)
    if separator is None:
        if isinstance(value, list):
            yield from (Pair(name, (), encode(plain_text(item))) for item in present(value))
        else:
            yield from (Pair(key, (key,), encode(plain_text(item))) for key, item in _present_members(value))
        return
    parts: list[JSON] = (
        present(value)
        if isinstance(value, list)
        else [part for member in _present_members(value) for part in member]
    )
    if parts:
        # A comma between items is not encoded; a space and a pipe cannot be in a URI.
        between = separator if separator == "," else encode(separator)
        yield Pair(name, (), _joined([encode(plain_text(part)) for part in parts], separator, between))


def _deep_pairs(name: str, members: tuple[str, ...], value: JSON, encode: Encode) -> Iterator[Pair]:
    """Yield `name[member]`; deeper, where OpenAPI says nothing, as Stripe does: `name[0][member]`."""
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = [(str(index), item) for index, item in enumerate(value)]
    elif value is None:
        return
    else:
        yield Pair(name, members, encode(plain_text(value)))
        return
    for key, item in inner:
        yield from _deep_pairs(f"{name}[{key}]", (*members, key), item, encode)


# Arguments in the path of a request.
#
# An argument stays in its segment: it cannot be empty, nor a dot segment, not even after further decoding.

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SLASH: Final = re.compile(r"[/\\]")
# How often a path argument is decoded to find a hidden dot segment: nothing on the way to an API decodes more
# often, and each time the text gets shorter.
_DECODINGS: Final = 4
_PLAIN: Final = frozenset({Style.REPEAT, Style.COMMA, Style.PAIRS})
_MATRIX: Final = frozenset({Style.MATRIX, Style.MATRIX_EXPLODED})


def segment_of(parameter: Parameter, value: JSON) -> str:
    """Return a path argument, encoded.

    Raises `Refused` where it cannot be a part of the path.
    """
    argument, style = parameter.argument, parameter.style
    if type(value) is str and style in _PLAIN:  # nearly all of them
        _require_one_segment(argument, value)
        return as_uri_text(value)
    if value is None or (isinstance(value, dict) and style is Style.REPEAT):
        raise unsendable((argument,), "is part of the path; give a string or a number")
    value = without_nulls(value, style)
    if isinstance(value, list | dict) and not value:
        raise unsendable((argument,), "is part of the path, and cannot be empty")
    for text in _texts(value, style):
        # A matrix parameter without a value is its name.
        if text or style not in _MATRIX:
            _require_one_segment(argument, text)
    try:
        return expanded(as_uri_text(parameter.name), value, style, as_uri_text)
    except AmbiguousText as why:
        raise unsendable((argument,), str(why)) from None


def _texts(value: JSON, style: Style) -> Iterator[str]:
    """Yield what becomes a part of the path."""
    if style is Style.JSON or not isinstance(value, list | dict):
        yield plain_text(value)
    elif isinstance(value, list):
        yield from map(plain_text, value)
    else:
        for key, item in value.items():
            yield key
            yield plain_text(item)


def _require_one_segment(argument: str, text: str) -> None:
    for _ in range(_DECODINGS):
        if not text:
            raise unsendable((argument,), "is part of the path, and cannot be empty")
        if _CONTROL.search(text):
            raise unsendable((argument,), "is part of the path, and cannot have control characters in it")
        if "." in text and any(part.partition(";")[0] in (".", "..") for part in _SLASH.split(text)):
            raise unsendable(
                (argument,), "is part of the path, and cannot be a dot segment or have one in it"
            )
        if "%" not in text or (decoded := unquote(text)) == text:
            return
        text = decoded
    raise unsendable((argument,), "is part of the path, and is percent-encoded too often; send it unencoded")


# Reserved names in a query, a form or cookies: fixed by the operator, or those of parameters.
#
# A name may be there twice, and servers differ in which of the two they use, and in what they take for the
# same name. So that a caller cannot override a reserved name, names are compared as the most lenient
# servers read them; two are the same if any reading of one is, or begins with, a reading of the other:
#
# | name | is read as |
# | --- | --- |
# | `Tenant`, ` tenant ` | `tenant`: without case and surrounding spaces; PHP drops only those before the
#    name |
# | `tenant[]`, `tenant[x]`, `[tenant]` | `tenant`, or a member of it |
# | `tenant.id`, `tenant id` | `tenant_id`, as in PHP |
# | `tenant[id` | `tenant_id`, as in PHP, where the bracket is not closed; a member of `tenant` in Rails |
# | `tenant`, NUL, anything | `tenant`, where a NUL ends a text |

# How many brackets of a name are compared: deeper than any real parameter, and bounded for long names.
_NESTINGS: Final = 8
_BRACKETS: Final = re.compile(r"[\[\]]+")
_UNDERSCORES: Final = str.maketrans({".": "_", " ": "_"})


class TakenNames:
    """The reserved names of one operation's query, form or cookies."""

    __slots__ = ("_fixed", "_placed")

    def __init__(
        self, fixed_query: str, placed: Iterable[tuple[str, str]], credentials: Iterable[str] = ()
    ) -> None:
        """Reserve the names in the path's query, those of credentials, and the parameters.

        Parameters are pairs of name and argument.
        """
        # Some servers accept a semicolon as an ampersand.
        fixed = parse_qsl(fixed_query.replace(";", "&"), keep_blank_values=True)
        self._fixed = _index((name, "") for name in (*(name for name, _ in fixed), *credentials))
        self._placed = _index(placed)

    def is_fixed(self, name: str) -> bool:
        """Return whether the operator has fixed the value of `name`."""
        return bool(self._fixed) and bool(_owners(self._fixed, name))

    def is_of_other_argument(self, name: str, argument: str) -> bool:
        """Return whether `name` belongs to a parameter other than `argument`."""
        return bool(self._placed) and bool(_owners(self._placed, name) - {argument})


def _index(names: Iterable[tuple[str, str]]) -> dict[tuple[str, bool], set[str]]:
    """Return the owners of each form of these names; the key also says whether it is the whole name."""
    found: dict[tuple[str, bool], set[str]] = {}
    for name, owner in names:
        for *shorter, whole in _readings(name):
            found.setdefault((whole, True), set()).add(owner)
            for form in shorter:
                found.setdefault((form, False), set()).add(owner)
    return found


def _owners(index: dict[tuple[str, bool], set[str]], name: str) -> set[str]:
    """Return the owners of names that a server may confuse with `name`: `a[b]` with `a`, `a` with `a[b]`."""
    found: set[str] = set()
    for forms in _readings(name):
        for form in forms:
            found |= index.get((form, True), set())
        found |= index.get((forms[-1], False), set())
    return found


def _readings(name: str) -> Iterator[list[str]]:
    """Yield what servers read in a name; `a`, `a[b` and `a[b[c` for `a[b][c]`, the last being the whole."""
    texts = {name, name.partition("\0")[0], name.replace("\0", "")} if "\0" in name else {name}
    # PHP drops only the spaces before a name: one after it is an underscore.
    trims = (str.strip, str.lstrip) if " " in name else (str.strip,)
    for text, trim in product(texts, trims):
        plain = trim(text).casefold()
        parts = [trim(part).translate(_UNDERSCORES) for part in _BRACKETS.split(plain, _NESTINGS)]
        if parts := [part for part in parts if part]:
            yield list(accumulate(parts, lambda before, part: f"{before}[{part}"))
        before, opened, after = plain.partition("[")
        if before and opened and "]" not in after:
            yield [f"{before}_{after.replace('[', '_')}".translate(_UNDERSCORES)]
