"""A folder of assets and their schema, and `portbook validate` in it."""

from __future__ import annotations

import json
from pathlib import Path

from support.portbook_process import Finished, run

TONE = {
    "type": "object",
    "properties": {"pitch": {"type": "number"}, "name": {"type": "string"}},
    "required": ["pitch"],
}


def with_tones(tmp_path: Path) -> Path:
    """A folder with one schema, one valid asset, and settings that name the schema's folder."""
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/tone.schema.json").write_text(json.dumps(TONE))
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets/tone.json").write_text('{"pitch": 1}')
    (tmp_path / "portbook.toml").write_text('[assets]\nschemas = "schemas"\n')
    return tmp_path


def bad(folder: Path) -> None:
    (folder / "assets/bad.json").write_text('{\n  "schema": "tone",\n  "pitch": "high",\n  "name": 5\n}\n')


def validate(folder: Path, *arguments: str) -> Finished:
    return run("validate", *arguments, cwd=folder)
