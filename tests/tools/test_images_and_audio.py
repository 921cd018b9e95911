"""Images and audio: from bytes or from files, each with its media type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook import Audio, Image


@pytest.mark.parametrize(
    ("form", "mime_type"),
    [("png", "image/png"), ("JPG", "image/jpeg"), (".webp", "image/webp"), ("svg", "image/svg+xml")],
)
def test_a_format_is_another_way_to_say_the_type(form: str, mime_type: str) -> None:
    assert Image(data=b"", format=form) == Image(b"", mime_type)
    assert Image(b"", format=form).as_json()["mimeType"] == mime_type
    assert Audio(b"", format="mp3") == Audio(b"", "audio/mpeg")


@pytest.mark.parametrize(
    ("name", "given", "mime_type"),
    [
        ("a.png", {}, "image/png"),
        ("a.JPG", {}, "image/jpeg"),
        ("a", {}, "image/png"),
        ("a.x", {"format": "gif"}, "image/gif"),
    ],
)
def test_a_path_gives_the_bytes_and_the_type(
    name: str, given: dict[str, Any], mime_type: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"\x00")
    for path in (tmp_path / name, str(tmp_path / name)):
        assert Image(path=path, **given) == Image(b"\x00", mime_type)
    (tmp_path / "a.mp3").write_bytes(b"\x01")
    assert Audio(path=tmp_path / "a.mp3").as_json() == {
        "type": "audio",
        "data": "AQ==",
        "mimeType": "audio/mpeg",
    }


def test_data_or_a_path_is_needed_and_not_both(tmp_path: Path) -> None:
    for given in ({}, {"data": b"", "path": tmp_path / "x"}):
        with pytest.raises(TypeError, match="Image takes either data or path"):
            Image(**given)  # pyright: ignore[reportArgumentType] - both at once
    with pytest.raises(FileNotFoundError):
        Audio(path=tmp_path / "none.wav")
