"""`scan_definition`: runs the six checks over one definition. Pure: no I/O.

1. Hidden characters, on the raw text: the other checks read text without them.
2. Look-alikes of a neighbour's tool, and reach for it.
3. Text that decodes into something else.
4. Directives to the model, and what drifts from the topic of a tool.
5. Secrets.
6. The promised effect, of tools alone: it compares parts with each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from portbook.model import JSON
from portbook.scan.directive_check import find_directives, find_drift
from portbook.scan.embedded_secrets import find_secrets
from portbook.scan.encoded_text import find_encoded
from portbook.scan.hidden_characters import find_hidden
from portbook.scan.promised_effect import find_effect
from portbook.scan.scanned_text_and_finding import ScanFinding, texts_of
from portbook.scan.shadowing import Neighbours, find_look_alike, find_reach

__all__ = ["scan_definition"]


def scan_definition(
    name: str, definition: Mapping[str, JSON], neighbours: Neighbours | None = None, *, is_tool: bool = True
) -> tuple[ScanFinding, ...]:
    """Return what is found in a definition, in the order of its places."""
    near = neighbours or Neighbours()
    found = list(_in_texts(name, definition, near))
    if is_tool:
        found += [*find_look_alike(name, near), *find_effect(name, definition), *find_drift(name, definition)]
    return tuple(sorted(found, key=lambda each: (each.pointer, each.tier.value, each.check.value)))


def _in_texts(name: str, definition: Mapping[str, JSON], near: Neighbours) -> Iterator[ScanFinding]:
    names = frozenset(near.names())
    for text in texts_of(name, definition):
        yield from find_hidden(text)
        yield from find_reach(text, names)
        yield from find_encoded(text)
        yield from find_directives(text)
        yield from find_secrets(text)
