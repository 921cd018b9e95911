"""Schemas that refer to each other, each made into one document that refers to nothing outside of itself.

A schema's address is its `$id`; without one, the address of its file. Either names it. What a schema refers
to, and what that refers to, is put under its `$defs`, where JSON Schema finds it by its `$id`. The documents
themselves are left as they are. Pure: no I/O, nothing is ever fetched.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urldefrag, urljoin

from portbook.model import JSONObject
from portbook.schema.references import Document, Path

__all__ = ["Bundler"]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A schema under its address, and its references to other documents."""

    address: str
    schema: JSONObject
    references: tuple[tuple[Path, str], ...]


class Bundler:
    """Knows the schemas of a library by every address that names one of them."""

    def __init__(self, schemas: Mapping[str, JSONObject]) -> None:
        """Take schemas by the addresses of their files; of two with the same `$id`, the first has it."""
        self._files: dict[str, _Placed] = {}
        self._named: dict[str, _Placed] = {}
        self.taken: dict[str, str] = {}
        """Files with an `$id` that another has, each with that `$id`."""
        for uri, schema in schemas.items():
            placed, resources = _place(uri, schema)
            self._files[uri] = placed
            for address in (*resources, uri):
                if self._named.setdefault(address, placed) is not placed:
                    self.taken.setdefault(uri, address)

    def bundle(self, uri: str, schema: JSONObject | None = None) -> JSONObject:
        """Return the schema of the file at `uri`, with all that it refers to inside of it.

        `schema` is one that is not of the library; it may still refer to those that are. References that
        lead to no schema of the library stay as they are: whoever compiles it will say so.
        """
        root = self._files[uri] if schema is None else _place(uri, schema)[0]
        needed: dict[str, JSONObject] = {}
        waiting = [root]
        whole: JSONObject = {}
        while waiting:
            placed = waiting.pop()
            schema = self._resolved(placed)
            if placed is root:
                whole = schema
            for target in self._targets(placed):
                if target.address != root.address and target.address not in needed:
                    needed[target.address] = self._resolved(target)
                    waiting.append(target)
        if not needed:
            return whole
        own = whole.get("$defs")
        return {**whole, "$defs": {**(own if isinstance(own, dict) else {}), **dict(sorted(needed.items()))}}

    def _targets(self, placed: _Placed) -> list[_Placed]:
        found = (self._named.get(urldefrag(address).url) for _, address in placed.references)
        return [target for target in found if target is not None]

    def _resolved(self, placed: _Placed) -> JSONObject:
        """Return a schema whose references to other documents name those by their `$id`."""
        changed: list[tuple[Path, str]] = []
        for path, address in placed.references:
            url, fragment = urldefrag(address)
            target = self._files.get(url)
            if target is not None and target.address != url:
                changed.append((path, f"{target.address}#{fragment}" if fragment else target.address))
        if not changed:
            return placed.schema
        schema = copy.deepcopy(placed.schema)
        for path, address in changed:
            *way, last = path
            place: Any = schema
            for step in way:
                place = place[step]
            place[last] = address
        return schema


def _place(uri: str, schema: JSONObject) -> tuple[_Placed, list[str]]:
    """Return a schema under its absolute address, and the addresses of everything in it that has one."""
    identifier = schema.get("$id")
    try:
        address = urldefrag(urljoin(uri, identifier)).url if isinstance(identifier, str) else uri
    except ValueError:  # not an address: compiling will say so
        return _Placed(uri, schema, ()), []
    # A member of another type stays: the meta-schema has its own words for it.
    named = (
        schema if identifier is not None and not isinstance(identifier, str) else {**schema, "$id": address}
    )
    try:
        document = Document(named)
        references = tuple(document.outside())
    except ValueError:
        return _Placed(address, named, ()), [address]
    return _Placed(address, named, references), [name for name in document.resources if name]
