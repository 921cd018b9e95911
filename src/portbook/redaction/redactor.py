"""Takes secrets out of a value: by name, by pointer, by pattern, by look, and those that are known. Pure.

A value is never changed in place: what is touched is made anew, what is not is the very same object. What
was redacted once stays as it is when redacted again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import chain, islice
from typing import Any, Final, Literal, TypeAlias, cast

from portbook.canonical import json_bytes
from portbook.errors import Refused
from portbook.model import JSON
from portbook.redaction import detectors, key_value_text
from portbook.redaction.known_values import ESCAPE_PATTERNS, ESCAPE_TRIGGERS, KnownValues, has_views, views
from portbook.redaction.marks import MARK, hash_mark, is_mark
from portbook.redaction.pointers import Places, below, places_of, problem_of, trigger_of
from portbook.redaction.prefilter import Prefilter
from portbook.redaction.secret_names import NAMES, SecretNames, folded
from portbook.schema.engine import BadSchema, Validator, compile_schema
from portbook.schema.messages import shorten
from portbook.wire.parsing import parse

__all__ = ["BadRedaction", "Mode", "Redactor"]

Mode: TypeAlias = Literal["replace", "remove", "hash"]

# Deeper than any value that was parsed; text inside of text inside of a value can get there.
_MAX_DEPTH: Final = 256

# How often a text is looked at again after something was taken out of it.
_ROUNDS: Final = 4

# Names and short texts of which it is remembered that nothing is in them: rows of a list have the same ones
# over and over. More than an installation's tools have names, too few to fill the memory.
_MAX_CLEAN: Final = 4096
_MAX_CLEAN_LENGTH: Final = 64

# A text with more secrets than so many, and one more for so many characters, goes as a whole: there is not
# much else in it, and each that is taken out by itself takes its time.
_MANY: Final = 256
_DENSE: Final = 64


class BadRedaction(ValueError):
    """A pointer or a pattern that cannot be used; the message says which, and what to do."""


class _Gone:
    """Stands for a member that is to be left out."""


_GONE: Final = _Gone()


class Redactor:
    """What to take out, and what to put in its place. Immutable, and safe to share between threads."""

    __slots__ = (
        "_clean",
        "_detects",
        "_gate",
        "_hash_key",
        "_keys",
        "_known",
        "_mode",
        "_names",
        "_pairs",
        "_patterns",
        "_pointers",
        "_rules",
        "_start",
        "_text_gate",
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
        hash_key: bytes = b"",
    ) -> None:
        """Take out what `keys` (besides the built-in names) and `pointers` name, and what is found in texts.

        A string that one of `patterns` matches goes as a whole. `secrets` are values that must not be seen.

        Raises `BadRedaction` for a pointer or a pattern that cannot be used.
        """
        self._keys = tuple(keys)
        self._pointers = tuple(pointers)
        self._patterns = tuple(patterns)
        self._mode: Mode = mode
        self._detects = detectors
        self._hash_key = hash_key
        self._names = SecretNames(self._keys)
        self._start = _start(self._pointers)
        self._rules = tuple(map(_rule, self._patterns))
        self._known = KnownValues(secrets)
        self._pairs = key_value_text.KeyValueText(self._names)
        self._gate = self._make_gate()
        self._text_gate = self._make_text_gate()
        self._clean: set[str] = set()

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """Return the same redactor for other known secrets, as when a token was renewed."""
        return Redactor(
            self._keys,
            self._pointers,
            self._patterns,
            secrets,
            self._mode,
            detectors=self._detects,
            hash_key=self._hash_key,
        )

    def might_touch(self, body: bytes) -> bool:
        """Return whether something could be taken out of the value that `body` is, as compact JSON.

        Cheap, and never wrong where it says no.
        """
        return self._gate.opens(body)

    def redact(self, value: JSON) -> tuple[JSON, bool]:
        """Return `value` without its secrets, and whether there were any."""
        found = self._taken(value) if _ends(self._start) else self._walk(value, self._start, 0)
        if isinstance(found, _Gone):
            found = self._blank(value)
        return found, found is not value

    def redact_text(self, text: str) -> str:
        """Return `text` without its secrets."""
        found = self._string(text, (), 0)
        return MARK if isinstance(found, _Gone) else found

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
        """Take care of a number, and of what a Python function may return in place of JSON's own."""
        if isinstance(value, int | float):
            is_card = self._detects and type(value) is int and detectors.is_card_number(value)
            return self._taken(value) if is_card or self._known.are_in_number(value) else value
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
            return self._taken(value)
        made = _Object()
        is_changed = False
        for name, item in value.items():
            deeper = below(places, name) if places else ()
            if self._names.holds_secret(name, item) or (deeper and _ends(deeper)):
                found = self._taken(item)
            else:
                found = self._walk(item, deeper, depth + 1)
            shown = name if name in self._clean else self.redact_text(name)
            is_changed = is_changed or found is not item or shown != name
            if not isinstance(found, _Gone):
                made.add(shown, found)
        return made.members if is_changed else value

    def _array(self, value: list[JSON], places: Places, depth: int) -> JSON | _Gone:
        if depth > _MAX_DEPTH:
            return self._taken(value)
        made: list[JSON] = []
        is_changed = False
        for index, item in enumerate(value):
            deeper = below(places, str(index)) if places else ()
            is_end = bool(deeper) and _ends(deeper)
            found = self._taken(item) if is_end else self._walk(item, deeper, depth + 1)
            if isinstance(found, _Gone):  # without it, those behind it would stand in other places
                found = self._blank(item)
            is_changed = is_changed or found is not item
            made.append(found)
        return made if is_changed else value

    def _string(self, text: str, places: Places, depth: int) -> str | _Gone:
        """Take secrets out of a string: all of it for a pattern of the operator's, else where they stand.

        JSON inside of it is a value like any other.
        """
        if not places and text in self._clean:
            return text
        if self._rules and any(rule.allows(text) for rule in self._rules):
            return cast("str | _Gone", self._taken(text))
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
        if len(self._clean) >= _MAX_CLEAN:  # all new: what comes over and over comes again
            self._clean.clear()
        self._clean.add(text)

    def _inside(self, text: str, places: Places, depth: int) -> str | _Gone | None:
        """Return the JSON that `text` holds without its secrets; None if it holds none, or none of them."""
        if text.lstrip(_SPACES)[:1] not in ("{", "[", '"'):
            return None
        if not places and "\\" not in text and not self._gate.opens(_bytes_of(text)):
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
        """Return a text that is not JSON without its secrets; all of it goes where they are disguised."""
        for _ in range(_ROUNDS):
            most = _MANY + len(text) // _DENSE
            spans = list(islice(self._spans(text), most + 1))
            if len(spans) > most:
                break
            if not spans:
                is_disguised = has_views(text) and any(map(self._has_secret, views(text)))
                return self._mark(text) if is_disguised else text
            text = self._cut(text, sorted(spans))
        return self._mark(text)

    def _spans(self, text: str) -> Iterator[detectors.Span]:
        """Return where secrets stand in `text`; they may overlap."""
        if not self._text_gate.opens(_bytes_of(text)):
            return iter(())
        if not self._detects:
            return self._known.spans(text)
        return chain(self._known.spans(text), detectors.spans_of_shapes(text), self._pairs.spans(text))

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

    def _taken(self, value: Any) -> JSON | _Gone:
        return _GONE if self._mode == "remove" else self._blank(value)

    def _blank(self, value: Any) -> JSON:
        """Return a value of the same type that says nothing; the very same, if it already is one."""
        if isinstance(value, str):
            return value if is_mark(value) else self._mark(value)
        if isinstance(value, Enum):
            return self._blank(value.value)
        if value is None:
            return None
        blank = next((blank for kind, blank in _BLANKS if isinstance(value, kind)), MARK)
        return value if value == blank else copy.copy(blank)

    def _make_gate(self) -> Prefilter:
        names = (*map(folded, NAMES), *self._names.added, *map(trigger_of, self._pointers))
        triggers = [json_bytes(name)[1:-1].decode() for name in names]
        triggers += (*self._known.triggers, *ESCAPE_TRIGGERS)
        if self._detects:
            triggers += (*detectors.TRIGGERS, *key_value_text.TRIGGERS)
        return Prefilter.of(
            triggers,
            patterns=(*ESCAPE_PATTERNS, *(detectors.PATTERNS if self._detects else ())),
            in_runs=detectors.RUN_TRIGGERS if self._detects else (),
            opens_for_runs=self._detects,
            opens_beyond_ascii=bool(self._names.beyond_ascii),
            is_open=bool(self._rules),  # what a pattern finds has nothing that could be searched for
        )

    def _make_text_gate(self) -> Prefilter:
        """Return the gate of what is searched for in a text that has no escapes and no members."""
        if not self._detects:
            return Prefilter.of(self._known.triggers)
        return Prefilter.of(
            (*self._known.triggers, *detectors.TRIGGERS),
            patterns=(*detectors.PATTERNS, *self._pairs.patterns),
            in_runs=detectors.RUN_TRIGGERS,
            opens_for_runs=True,
        )


# What JSON takes for white space.
_SPACES: Final = " \t\r\n"

# What keeps a value's type and says nothing; a bool is an int to Python.
_BLANKS: Final[tuple[tuple[type | tuple[type, ...], JSON], ...]] = (
    (bool, False),
    ((int, float), 0),
    ((list, tuple), []),
    (dict, {}),
)


class _Object:
    """Members as they are made; of names that are hidden, several may become the same."""

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


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _ends(places: Places) -> bool:
    return any(place.is_end for place in places)


def _start(pointers: tuple[str, ...]) -> Places:
    for pointer in pointers:
        if problem := problem_of(pointer):
            raise BadRedaction(f"pointer {shorten(pointer)}: {problem}")
    return places_of(pointers)


def _rule(pattern: str) -> Validator:
    try:
        return compile_schema({"pattern": pattern}, "")
    except BadSchema as error:
        raise BadRedaction(f"pattern {shorten(pattern)}: {error.findings[0].message}") from None
