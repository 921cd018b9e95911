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


PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("name", "data", "given", "mime_type"),
    [
        ("a.png", PNG, {}, "image/png"),
        ("a.JPG", b"\xff\xd8\xff\xe0", {}, "image/jpeg"),
        ("a", PNG, {}, "image/png"),
        ("a.x", b"GIF89a", {"format": "gif"}, "image/gif"),
        ("a.x", b"?", {"format": "x-own"}, "image/x-own"),
        ("a.svg", b"<svg/>", {}, "image/svg+xml"),
    ],
)
def test_a_path_gives_the_bytes_and_the_type(
    name: str, data: bytes, given: dict[str, Any], mime_type: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    for path in (tmp_path / name, str(tmp_path / name)):
        assert Image(path=path, **given) == Image(data, mime_type)
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


@pytest.mark.parametrize(
    ("make", "name", "data", "says"),
    [
        (Image, "notes.txt", b"words", "its extension names no image format"),
        (Image, "a.mp3", b"ID3", "its extension names no image format"),
        (Image, "a.png", b"words", "not a file of image/png"),
        (Image, "a.jpg", PNG, "not a file of image/jpeg"),
        (Image, "a", b"words", "not a file of image/png"),
        (Audio, "a.wav", b"words", "not a file of audio/wav"),
        (Audio, "a.png", PNG, "its extension names no audio format"),
    ],
)
def test_a_file_that_is_something_else_is_refused(
    make: type[Image | Audio], name: str, data: bytes, says: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=says):
        make(path=tmp_path / name)
