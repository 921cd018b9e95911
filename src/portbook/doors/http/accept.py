"""Which forms of an answer a request allows, by its Accept header. Pure: no I/O."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["EVERYTHING", "Accepts", "accepted", "wants_page"]

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_PAGE: Final = "text/html"

# Clients send the same header always: it is read once, unless it is long enough to fill memory.
_MAX_REMEMBERED: Final = 512


class Accepts(NamedTuple):
    """Whether an answer may be one document, or a stream of events."""

    json: bool
    events: bool


EVERYTHING: Final = Accepts(json=True, events=True)


def accepted(header: bytes | None) -> Accepts:
    """Return what a header allows; everything where there is none."""
    if header is None:
        return EVERYTHING
    return _read(header) if len(header) <= _MAX_REMEMBERED else _read.__wrapped__(header)


def wants_page(header: bytes | None) -> bool:
    """Return whether a page is asked for by name, and no document rather: browsers ask so, programs not."""
    weights = _weights(header or b"")
    return weights.get(_PAGE, 0) > 0 and weights[_PAGE] >= weights.get(_JSON, 0)


@lru_cache(maxsize=256)
def _read(header: bytes) -> Accepts:
    weights = _weights(header)
    return Accepts(_allows(weights, _JSON), _allows(weights, _EVENTS))


def _weights(header: bytes) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in header.decode("latin-1").split(","):
        media, *parameters = (each.strip().lower() for each in part.split(";"))
        weights[media] = _weight(parameters)
    return weights


def _allows(weights: dict[str, float], form: str) -> bool:
    """Return whether the most specific range that a form is in has a weight."""
    for media in (form, form.partition("/")[0] + "/*", "*/*"):
        if media in weights:
            return weights[media] > 0
    return False


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:  # as if it were not there
                return 1.0
    return 1.0
