"""Files of a folder: what is read, what is not and why, and that nothing outside of it ever is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from portbook.assets import json_files as files
from portbook.assets.json_files import MAX_FILE_BYTES, CannotRead, Found, json_files, read_file


def paths(folder: Path) -> dict[str, str]:
    return {found.path: found.problem for found in json_files(folder)}


def test_json_files_are_found_below_the_folder_in_one_order(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "sub/c.json", "sub/a.json", "a.txt", ".hidden.json", ".git/x.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}")
    assert list(json_files(tmp_path)) == [
        Found("a.json", b"{}"),
        Found("b.json", b"{}"),
        Found("sub/a.json", b"{}"),
        Found("sub/c.json", b"{}"),
    ]


def test_a_link_is_followed_inside_of_the_folder_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    (folder / ".data").mkdir(parents=True)
    (folder / ".data/real.json").write_bytes(b"1")
    (tmp_path / "secret.json").write_bytes(b"2")
    for name, target in {
        "mounted.json": ".data/real.json",
        "out.json": "../secret.json",
        "absolute.json": str(tmp_path / "secret.json"),
        "loop.json": "loop.json",
        "gone.json": "nowhere.json",
        "device.json": "/dev/zero",
    }.items():
        (folder / name).symlink_to(target)
    (folder / "folder").symlink_to(tmp_path)
    found = {one.path: (one.data, one.problem) for one in json_files(folder)}
    assert found.pop("mounted.json") == (b"1", "")
    assert set(found) == {"out.json", "absolute.json", "loop.json", "gone.json", "device.json"}
    assert all(data == b"" for data, _ in found.values())
    assert found["out.json"][1] == "a link that points outside of its folder"


def test_a_link_that_takes_the_place_of_a_folder_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/a.json").write_bytes(b"1")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.json").write_bytes(b"secret")
    real = os.path.realpath

    def swap(path: Path, *, strict: bool) -> str:
        answer = real(path, strict=strict)
        if answer.endswith("a.json"):
            (folder / "sub").rename(folder / ".was")
            (folder / "sub").symlink_to(tmp_path / "outside")
        return answer

    monkeypatch.setattr("os.path.realpath", swap)
    [found] = json_files(folder)
    assert found.data == b""
    assert found.problem.startswith("cannot be read: ")


def test_only_regular_files_of_a_size_that_can_be_one_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    with (tmp_path / "big.json").open("wb") as big:
        big.truncate(MAX_FILE_BYTES + 1)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.json"))
        problems = paths(tmp_path)
    assert problems.pop("socket.json").startswith("cannot be read: ")
    assert problems == {"big.json": f"larger than {MAX_FILE_BYTES} bytes", "pipe.json": "not a regular file"}


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b" " * 10)
    assert read_file(tmp_path / "a.json", 10) == b" " * 10
    with pytest.raises(CannotRead, match="larger than 9 bytes"):
        read_file(tmp_path / "a.json", 9)


@pytest.mark.parametrize(
    ("limit", "problem"), [("MAX_FILES", "more than 2 files"), ("MAX_TOTAL_BYTES", "more than 2 bytes")]
)
def test_what_is_too_much_for_a_library_is_left_out_and_said(
    limit: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, limit, 2)
    for name in "abcd":
        (tmp_path / f"{name}.json").write_bytes(b"1")
    *kept, last = json_files(tmp_path)
    assert [found.path for found in kept] == ["a.json", "b.json"]
    assert last.path == "c.json"
    assert problem in last.problem


@pytest.mark.parametrize("name", ["missing", "file", "loop"])
def test_a_folder_that_is_none_cannot_be_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(CannotRead, match="cannot be read: "):
        list(json_files(tmp_path / name))


@pytest.mark.parametrize("name", ["missing.json", "a\0b", "."])
def test_a_named_file_that_cannot_be_read_is_said_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match=r"cannot be read: |not a regular file"):
        read_file(tmp_path / name)
