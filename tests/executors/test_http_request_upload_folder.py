"""Files by their paths: regular ones in the folder, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portbook.apis.form_and_file_bodies import NamedFile
from portbook.errors import Reason, Refused
from portbook.executors.http_request_threads_and_uploads import UploadFolder

PLACE = ("file", "path")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "a.txt").write_bytes(b"abc")
    (inside / "deep" / "b.txt").write_bytes(b"\x00\xff")
    (tmp_path / "secret.txt").write_bytes(b"secret")
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    (inside / "own.txt").symlink_to(inside / "a.txt")
    (inside / "out").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe")
    return inside


def read(folder: Path, *paths: str, max_bytes: int = 100) -> dict[str, bytes]:
    return UploadFolder(folder, max_bytes).read_all([NamedFile(path, PLACE) for path in paths])


def test_regular_files_in_the_folder_are_read(folder: Path) -> None:
    assert read(folder, "a.txt", "deep/b.txt", "a.txt") == {"a.txt": b"abc", "deep/b.txt": b"\x00\xff"}


def test_the_folder_itself_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert read(tmp_path / "link", "a.txt") == {"a.txt": b"abc"}


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/etc/passwd", "..", "../secret.txt", "deep/../a.txt", "./a.txt", "deep//b.txt", "deep/",
        "deep", "gone.txt", "gone/a.txt", "a.txt/b", "link.txt", "own.txt", "out/secret.txt", "pipe", "a\0b",
        "x" * 5000,
    ],
)  # fmt: skip
def test_everything_else_is_refused_and_nothing_waits(folder: Path, path: str) -> None:
    with pytest.raises(Refused) as caught:
        read(folder, path)
    assert caught.value.reason is Reason.BAD_ARGUMENTS
    assert [finding.pointer for finding in caught.value.findings] == ["/file/path"]
    assert "secret" not in caught.value.findings[0].message


def test_the_files_of_a_call_are_within_the_size_together(folder: Path) -> None:
    assert read(folder, "a.txt", "deep/b.txt", max_bytes=5)
    for paths, max_bytes in ((("a.txt",), 2), (("a.txt", "deep/b.txt"), 4)):
        with pytest.raises(Refused) as caught:
            read(folder, *paths, max_bytes=max_bytes)
        assert f"larger than {max_bytes} bytes" in caught.value.findings[0].message


def test_no_descriptor_is_left_open(folder: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("deep/b.txt", "pipe", "link.txt", "deep/gone"):
        try:
            read(folder, path)
        except Refused:
            continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_counts_as_often_as_it_is_named(folder: Path) -> None:
    assert read(folder, "a.txt", "a.txt", max_bytes=6) == {"a.txt": b"abc"}
    with pytest.raises(Refused) as caught:
        read(folder, "a.txt", "a.txt", "a.txt", max_bytes=8)
    assert caught.value.reason is Reason.BAD_ARGUMENTS
