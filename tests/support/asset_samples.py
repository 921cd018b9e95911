"""A small library of our own, as the asset contract names things; and a backend to talk to."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Writes a file below the test's folder: bytes as they are, anything else as JSON.
Write = Callable[[str, Any], Path]

# An asset's schema of our own, under the name that the contract gives it.
ASSET: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "version": "0.7.0",
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "shader": {
            "type": "object",
            "properties": {"uniforms": {"type": "array", "items": {"type": "number"}}},
        },
        "tone": {"$ref": "tone.schema.json"},
    },
    "required": ["name"],
    "additionalProperties": False,
}
TONE: dict[str, Any] = {
    "$id": "https://schemas.example/0.2.1/tone.schema.json",
    "type": "object",
    "properties": {"pitch": {"type": "number"}},
    "required": ["pitch"],
}


@dataclass(frozen=True)
class BackendProcess:
    url: str

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return json.loads(response.read())

    @property
    def seen(self) -> list[Any]:
        """The requests that it got, whatever it answered."""
        return self.get("/seen")
