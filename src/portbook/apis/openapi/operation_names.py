"""Names of operations as tools: `operationId`, or method and path; no two alike. Pure: no I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

from portbook.tools.tool_names import MAX_NAME, name_digest, shortened

__all__ = ["ImportedNames", "own_name", "plain_name"]


@dataclass(frozen=True, slots=True)
class ImportedNames:
    """How the operations of a document are named."""

    longest: int = MAX_NAME
    """A longer name is shortened."""
    shared: frozenset[str] = frozenset()
    """Names that another document of the gateway has, too."""
    document: str = ""
    """The document, as the settings name it: it tells operations with a shared name apart."""

    def distinct(self, name: str, place: str, count: int) -> str:
        """Return the name of the operation at `place`, such as `GET /orders`; `count` of them share `name`.

        All operations of one name get a digest of their place, and of their document where that is what tells
        them apart: a rule for the name must not silently mean one of them.
        """
        if name in self.shared:
            name = f"{name}_{name_digest(f'{self.document} {place}')}"
        elif count > 1:
            name = f"{name}_{name_digest(place)}"
        return self.fitting(name)

    def fitting(self, name: str) -> str:
        """Return the name, shortened where it is too long."""
        return shortened(name, self.longest)


def own_name(operation_id: str | None, method: str, path: str) -> str:
    """Return the name of an operation before it is told apart: its `operationId`, or method and path."""
    return plain_name(operation_id or f"{method}{path}")


def plain_name(text: str) -> str:
    """Return a tool's name for `getOrderById` or `GET/orders/{id}`: lower case, with underscores."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    text = re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", text)
    return re.sub(r"_+", "_", re.sub(r"[^a-z0-9_.]+", "_", text.lower())).strip("_.") or "operation"
