"""Arguments in the path of a request. Pure: no I/O.

An argument stays in its segment: it cannot be empty, nor a dot segment, not even after further decoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from portbook.apis.parameter_styles import (
    AmbiguousText,
    as_uri_text,
    expanded,
    plain_text,
    unsendable,
    without_nulls,
)
from portbook.model import JSON
from portbook.tools.http_operation import Parameter, Style

__all__ = ["segment_of"]

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
