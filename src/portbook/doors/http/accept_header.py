"""Which media types a request accepts, by its Accept header. Pure: no I/O."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["EVERYTHING", "Accepts", "accepted", "wants_page"]

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_PAGE: Final = "text/html"

# Clients always send the same header: it is parsed once, unless it is long enough to fill memory.
_MAX_REMEMBERED: Final = 512


class Accepts(NamedTuple):
    """Whether an answer may be a JSON document, and whether it may be a stream of events."""

    json: bool
    events: bool


EVERYTHING: Final = Accepts(json=True, events=True)


def accepted(header: bytes | None) -> Accepts:
    """Return what a header accepts; everything without a header."""
    if header is None:
        return EVERYTHING
    return _read(header) if len(header) <= _MAX_REMEMBERED else _read.__wrapped__(header)


def wants_page(header: bytes | None) -> bool:
    """Return whether HTML is accepted by name and not less than JSON: browsers send that, programs do not."""
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
    """Return whether the most specific media range that includes `form` has a weight above zero."""
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
            except ValueError:  # ignored
                return 1.0
    return 1.0
