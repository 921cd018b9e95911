"""The files that the search of documents reads. Pure: no I/O."""

from __future__ import annotations

from typing import Final

__all__ = ["MARKDOWN", "SUFFIXES"]

MARKDOWN: Final = (".md", ".markdown")

SUFFIXES: Final = (*MARKDOWN, ".txt", ".rst")
"""The supported file extensions, in lower case."""
