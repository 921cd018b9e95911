"""Cuts in a text: spans that are taken out, or replaced. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Cut", "apply_cuts", "line_of", "newline_of", "whole_lines"]


class Cut(NamedTuple):
    """A span of a text, and what stands there instead."""

    start: int
    end: int
    text: str = ""


def apply_cuts(text: str, cuts: Iterable[Cut]) -> str:
    """Return a text with spans replaced, which do not overlap."""
    for cut in sorted(cuts, reverse=True):
        text = text[: cut.start] + cut.text + text[cut.end :]
    return text


def line_of(text: str, at: int) -> str:
    """Return what stands before a place in its line."""
    return text[text.rfind("\n", 0, at) + 1 : at]


def newline_of(text: str) -> str:
    """Return the line break that a text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def whole_lines(text: str, start: int, end: int, comma: int | None = None) -> Cut:
    """Return the cut of a span with the comma after it, and with its lines where nothing else is on them."""
    if comma is not None and not text[end:comma].strip():
        end = comma + 1
        between = ""
    else:
        between = "" if comma is None else text[end:comma]
        end = end if comma is None else comma + 1
    if between:  # a comment before the comma stays
        return Cut(start, end, between)
    before = line_of(text, start)
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop + 1
    if not before.strip() and not text[end:stop].strip():
        return Cut(start - len(before), stop)
    return Cut(start, end)
