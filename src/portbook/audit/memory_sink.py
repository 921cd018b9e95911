"""Sinks without files: one that keeps records in memory, and one that drops them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from portbook.audit.record_views_and_fields import RecordLines, whole_views
from portbook.model import JSONObject

__all__ = ["MemorySink", "NoSink"]


class MemorySink:
    """Keeps records in lists, for tests."""

    def __init__(self) -> None:
        self.records: list[JSONObject] = []
        self.executions: list[JSONObject] = []
        self.intents: list[JSONObject] = []
        self.bases: list[JSONObject] = []

    def look(self) -> None:
        """Do nothing: memory cannot be removed."""

    def mend(self) -> None:
        """Do nothing: memory does not fill up."""

    def intend(self, intent: bytes) -> None:
        """Keep `intent`."""
        self.intents.append(json.loads(intent))

    def explain(self, basis: bytes) -> None:
        """Keep `basis`."""
        self.bases.append(json.loads(basis))

    def write(self, envelope: bytes, execution: bytes) -> None:
        """Keep both views."""
        self.records.append(json.loads(envelope))
        self.executions.append(json.loads(execution))

    def write_all(self, records: Sequence[RecordLines]) -> Mapping[int, OSError]:
        """Keep both views of each record."""
        for record in records:
            self.write(*whole_views(record))
        return {}

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class NoSink:
    """Drops all records, for use without files."""

    def look(self) -> None:
        """Do nothing: there is nothing to check."""

    def mend(self) -> None:
        """Do nothing: nothing can fail."""

    def intend(self, intent: bytes) -> None:
        """Drop `intent`."""

    def explain(self, basis: bytes) -> None:
        """Drop `basis`."""

    def write(self, envelope: bytes, execution: bytes) -> None:
        """Drop both views."""

    def write_all(self, records: Sequence[RecordLines]) -> Mapping[int, OSError]:
        """Drop all records."""
        return {}

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
