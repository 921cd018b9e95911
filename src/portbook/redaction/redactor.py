"""`Redactor`: redacts secrets in a value by name, pointer, pattern, shape and known value. Pure: no I/O.

A value is never changed in place: changed parts are copied, unchanged parts are the same objects. Redacting
twice gives the same result as redacting once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import chain, islice
from typing import Any, Final, Literal, TypeAlias, cast

from portbook.canonical import NotJSON, json_bytes, rewritten_bytes
from portbook.errors import Refused
from portbook.model import JSON
from portbook.redaction import detectors, key_value_text
from portbook.redaction.detectors import Cards, has_marked_token, is_card_number, spans_of_shapes
from portbook.redaction.known_secrets import ESCAPE_PATTERNS, ESCAPE_TRIGGERS, KnownValues, has_views, views
from portbook.redaction.prefilter import Prefilter, UnfoldedPrefilter
from portbook.redaction.replacements_and_pointers import (
    MARK,
    Places,
    below,
    blank_of,
    hash_mark,
    is_mark,
    place_of,
    places_of,
    problem_of,
    trigger_of,
)
from portbook.redaction.secret_names import SecretNames
from portbook.schema.engine import BadSchema, Validator, compile_schema
from portbook.schema.violation_wording import shorten
from portbook.wire.parsing import parse

__all__ = ["BadRedaction", "Mode", "Redactor"]

Mode: TypeAlias = Literal["replace", "remove", "hash"]

# Deeper than the parser allows; JSON nested in strings can reach it.
_MAX_DEPTH: Final = 256

# How often a text is searched again after a redaction.
_ROUNDS: Final = 4

# A cache of names and short texts without secrets: the rows of a list repeat the same ones. More than the
# names of an installation's tools, too few to fill the memory.
_MAX_CLEAN: Final = 4096
_MAX_CLEAN_LENGTH: Final = 64

# From so many items on, each is looked at as bytes before it is walked: most rows have no secret.
_LONG_LIST: Final = 16

# A text with more than _MANY secrets, plus one per _DENSE characters, is redacted as a whole: little else is
# in it, and each separate redaction takes time.
_MANY: Final = 256
_DENSE: Final = 64


class BadRedaction(ValueError):
    """A pointer or a pattern that cannot be used; the message names it and the fix."""

    def __init__(self, setting: Literal["pointers", "patterns"], number: int, message: str) -> None:
        super().__init__(message)
        self.setting = setting
        """The list that has it, and its place in there."""
        self.number = number


class _Gone:
    """Marks a member to leave out."""


_GONE: Final = _Gone()


class Redactor:
    """Redacts secrets in values and text. Immutable except for a cache, and thread-safe."""

    __slots__ = (
        "_cards",
        "_clean",
        "_detects",
        "_hash_key",
        "_key_values",
        "_keys",
        "_known",
        "_mode",
        "_names",
        "_patterns",
        "_pointers",
        "_prefilter",
        "_rules",
        "_start",
        "_text_prefilter",
        "might_touch",
    )

    def __init__(
        self,
        keys: Iterable[str] = (),
        pointers: Iterable[str] = (),
        patterns: Iterable[str] = (),
        secrets: Iterable[str] = (),
        mode: Mode = "replace",
        *,
        detectors: bool = True,
        cards: Cards = "strings",
        hash_key: bytes = b"",
    ) -> None:
        """Redact members named by `keys` (beside the built-in names) or `pointers`, and secrets in text.

        A string that matches one of `patterns` is redacted as a whole. `secrets` are known secret values.
        Card numbers are redacted in `strings`, in numbers too (`everywhere`), or not at all (`off`).

        Raises `BadRedaction` where a pointer or a pattern is not valid.
        """
        self._keys = tuple(keys)
        self._pointers = tuple(pointers)
        self._patterns = tuple(patterns)
        self._mode: Mode = mode
        self._detects = detectors
        self._cards: Cards = cards if detectors else "off"
        self._hash_key = hash_key
        self._names = SecretNames(self._keys)
        self._start = _start(self._pointers)
        self._rules = tuple(_rule(*each) for each in enumerate(self._patterns))
        self._known = KnownValues(secrets)
        self._key_values = key_value_text.KeyValueText(self._names)
        self._prefilter = self._make_prefilter()
        self._text_prefilter = self._make_text_prefilter()
        self.might_touch = self._prefilter.passes
        """Returns whether the value with this compact JSON may contain a secret; a no is always right."""
        self._clean: set[str] = set()

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """Return this redactor with new known secrets, as when a token was renewed."""
        return Redactor(
            self._keys,
            self._pointers,
            self._patterns,
            secrets,
            self._mode,
            detectors=self._detects,
            cards=self._cards,
            hash_key=self._hash_key,
        )

    def redact(self, value: JSON) -> tuple[JSON, bool]:
        """Return `value` without its secrets, and whether there were any."""
        found = self._redacted(value) if _ends(self._start) else self._walk(value, self._start, 0)
        if isinstance(found, _Gone):
            found = self._blank(value)
        return found, found is not value

    def redact_text(self, text: str) -> str:
        """Return `text` without its secrets."""
        found = self._string(text, (), 0)
        return MARK if isinstance(found, _Gone) else found

    def place_of_secret(self, value: JSON) -> str | None:
        """Return the JSON Pointer of a secret in a document that must not be altered; None if it has none.

        Only known secrets and tokens with a mark of their own count: names, formats, pointers and patterns
        mean nothing in a document that describes data.
        """
        return place_of(value, self._is_certain)

    def _is_certain(self, value: str | float) -> bool:
        if not isinstance(value, str):
            return self._known.are_in_number(value)
        if value in self._clean:
            return False
        return any(map(self._is_certain_in, chain((value,), views(value) if has_views(value) else ())))

    def _is_certain_in(self, text: str) -> bool:
        is_known = next(self._known.spans(text), None) is not None
        return is_known or (self._detects and has_marked_token(text))

    def _walk(self, value: JSON, places: Places, depth: int) -> JSON | _Gone:
        if isinstance(value, str):
            return self._string(value, places, depth)
        if isinstance(value, dict):
            return self._object(value, places, depth)
        if isinstance(value, list):
            return self._array(value, places, depth)
        if value is None or isinstance(value, bool):
            return value
        return self._other(value, places, depth)

    def _other(self, value: Any, places: Places, depth: int) -> Any:
        """Redact a number, or a Python value that JSON has no type for, such as a tuple or an enum."""
        if isinstance(value, int | float):
            is_card = self._cards == "everywhere" and type(value) is int and is_card_number(value)
            return self._redacted(value) if is_card or self._known.are_in_number(value) else value
        if isinstance(value, tuple):
            plain: Any = list(cast("tuple[Any, ...]", value))
        elif isinstance(value, Enum):
            plain = value.value
        else:
            return value
        found: Any = self._walk(plain, places, depth)
        return cast("Any", value) if found is plain else found

    def _object(self, value: dict[str, JSON], places: Places, depth: int) -> JSON | _Gone:
        if depth > _MAX_DEPTH:
            return self._redacted(value)
        made = _Object()
        is_changed = False
        for name, item in value.items():
            deeper = below(places, name) if places else ()
            if self._names.holds_secret(name, item) or (deeper and _ends(deeper)):
                found = self._redacted(item)
            else:
                found = self._walk(item, deeper, depth + 1)
            shown = name if name in self._clean else self.redact_text(name)
            is_changed = is_changed or found is not item or shown != name
            if not isinstance(found, _Gone):
                made.add(shown, found)
        return made.members if is_changed else value

    def _array(self, value: list[JSON], places: Places, depth: int) -> JSON | _Gone:
        if depth > _MAX_DEPTH:
            return self._redacted(value)
        made: list[JSON] = []
        is_changed = False
        is_spared = self._is_spared if len(value) >= _LONG_LIST and not places else _never
        for index, item in enumerate(value):
            if is_spared(item):
                made.append(item)
                continue
            deeper = below(places, str(index)) if places else ()
            is_end = bool(deeper) and _ends(deeper)
            found = self._redacted(item) if is_end else self._walk(item, deeper, depth + 1)
            if isinstance(found, _Gone):  # removing it would shift the indexes of later items
                found = self._blank(item)
            is_changed = is_changed or found is not item
            made.append(found)
        return made if is_changed else value

    def _is_spared(self, item: JSON) -> bool:
        """Return whether a row certainly has no secret; that takes a tenth of the time of walking it."""
        if not isinstance(item, dict | list) or self._prefilter.passes_all:
            return False
        try:
            return not self._prefilter.passes(rewritten_bytes(item))
        except NotJSON:
            return False

    def _string(self, text: str, places: Places, depth: int) -> str | _Gone:
        """Redact a string: as a whole for one of the operator's patterns, otherwise each secret in it.

        JSON inside of a string is parsed and redacted as a value.
        """
        if not places and text in self._clean:
            return text
        if self._rules and any(rule.allows(text) for rule in self._rules):
            return cast("str | _Gone", self._redacted(text))
        inside = self._inside(text, places, depth)
        if isinstance(inside, _Gone):
            return inside
        if inside is not None and not self._known.are_in(inside):
            return inside
        found = self._plain(text if inside is None else inside)
        if found is text and not places and len(text) <= _MAX_CLEAN_LENGTH:
            self._remember(text)
        return found

    def _remember(self, text: str) -> None:
        if len(self._clean) >= _MAX_CLEAN:  # start anew: frequent texts return soon
            self._clean.clear()
        self._clean.add(text)

    def _inside(self, text: str, places: Places, depth: int) -> str | _Gone | None:
        """Return the JSON in `text` without its secrets; None if it is not JSON or has no secrets."""
        if text.lstrip(_SPACES)[:1] not in ("{", "[", '"'):
            return None
        if not places and "\\" not in text and not self._prefilter.passes(_bytes_of(text)):
            return None
        try:
            value = parse(text.strip(_SPACES).encode("utf-8", "surrogatepass"))
        except Refused:
            return None
        found = self._walk(value, places, depth + 1)
        if isinstance(found, _Gone):
            return found
        return text if found is value else json_bytes(found).decode()

    def _plain(self, text: str) -> str:
        """Return a text that is not JSON without its secrets; redact it whole where escapes hide a secret."""
        for _ in range(_ROUNDS):
            most = _MANY + len(text) // _DENSE
            spans = list(islice(self._spans(text), most + 1))
            if len(spans) > most:
                break
            if not spans:
                is_escaped = has_views(text) and any(map(self._has_secret, views(text)))
                return self._mark(text) if is_escaped else text
            text = self._cut(text, sorted(spans))
        return self._mark(text)

    def _spans(self, text: str) -> Iterator[detectors.Span]:
        """Return the spans of secrets in `text`; they may overlap."""
        if not self._text_prefilter.passes(_bytes_of(text)):
            return iter(())
        if not self._detects:
            return self._known.spans(text)
        return chain(
            self._known.spans(text), spans_of_shapes(text, self._cards), self._key_values.spans(text)
        )

    def _has_secret(self, text: str) -> bool:
        return next(self._spans(text), None) is not None

    def _cut(self, text: str, spans: list[detectors.Span]) -> str:
        """Return `text` with a mark for each run of overlapping spans."""
        pieces: list[str] = []
        at = 0
        start, end = spans[0]
        for next_start, next_end in (*spans[1:], (len(text) + 1, len(text) + 1)):
            if next_start <= end:
                end = max(end, next_end)
                continue
            pieces += (text[at:start], self._mark(text[start:end]))
            at, start, end = end, next_start, next_end
        return "".join((*pieces, text[at:]))

    def _mark(self, text: str) -> str:
        return hash_mark(text, self._hash_key) if self._mode == "hash" else MARK

    def _redacted(self, value: Any) -> JSON | _Gone:
        return _GONE if self._mode == "remove" else self._blank(value)

    def _blank(self, value: Any) -> JSON:
        """Return an empty value of the same type; `value` itself if it is already redacted."""
        if isinstance(value, str):
            return value if is_mark(value) else self._mark(value)
        if isinstance(value, Enum):
            return self._blank(value.value)
        if value is None:
            return None
        blank = blank_of(value)
        return value if value == blank else blank

    def _make_prefilter(self) -> Prefilter:
        names = self._key_values.names_in_json()
        places = [json_bytes(trigger_of(pointer))[1:-1].decode() for pointer in self._pointers]
        known = [json_bytes(start)[1:-1].decode() for start in self._known.starts]
        triggers = [*places, *known, *ESCAPE_TRIGGERS]
        marks = detectors.MARKS if self._detects else ()
        large = UnfoldedPrefilter(names, (*places, *known), marks, detects=self._detects)
        return Prefilter.of(
            [*triggers, *(detectors.TRIGGERS if self._detects else ())],
            patterns=(*names, *ESCAPE_PATTERNS, *(detectors.PATTERNS if self._detects else ())),
            marks=marks,
            passes_runs=self._detects,
            passes_beyond_ascii=bool(self._names.beyond_ascii),
            passes_all=bool(self._rules),  # a pattern has no trigger to search for
            passes_large=large.passes,
        )

    def _make_text_prefilter(self) -> Prefilter:
        """Return the prefilter for text that has no escapes and no members."""
        if not self._detects:
            return Prefilter.of(self._known.starts)
        return Prefilter.of(
            (*self._known.starts, *detectors.TRIGGERS),
            patterns=(*detectors.PATTERNS, *self._key_values.patterns),
            marks=detectors.MARKS,
            passes_runs=True,
        )


# White space in JSON.
_SPACES: Final = " \t\r\n"


class _Object:
    """Collects members; several redacted names may become equal, and are then numbered."""

    __slots__ = ("_number", "members")

    def __init__(self) -> None:
        self.members: dict[str, JSON] = {}
        self._number = 1

    def add(self, name: str, value: JSON) -> None:
        free = name
        while free in self.members:
            self._number += 1
            free = f"{name} {self._number}"
        self.members[free] = value


def _never(_: JSON) -> bool:
    return False


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _ends(places: Places) -> bool:
    return any(place.is_end for place in places)


def _start(pointers: tuple[str, ...]) -> Places:
    for number, pointer in enumerate(pointers):
        if problem := problem_of(pointer):
            raise BadRedaction("pointers", number, f"pointer {shorten(pointer)}: {problem}")
    return places_of(pointers)


def _rule(number: int, pattern: str) -> Validator:
    try:
        return compile_schema({"pattern": pattern}, "")
    except BadSchema as error:
        raise BadRedaction(
            "patterns", number, f"pattern {shorten(pattern)}: {error.findings[0].message}"
        ) from None
