from __future__ import annotations

import os
from pathlib import Path

import pytest

from portbook.builtin import docs_search as module
from portbook.builtin.docs_search import MAX_FILE_BYTES, text_files


def found(folder: Path) -> dict[str, str | None]:
    return {file.path: file.read() for file in text_files(folder)}


def write(path: Path, content: bytes = b"text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_files_come_in_one_order_those_of_a_folder_before_those_below(tmp_path: Path) -> None:
    for name in ("b/x.md", "b/a/y.rst", "z.txt", "a/x.markdown", "Z.MD", "a.md"):
        write(tmp_path / name)
    assert list(found(tmp_path)) == ["Z.MD", "a.md", "z.txt", "a/x.markdown", "b/x.md", "b/a/y.rst"]


SKIPPED = [".hidden.md", ".git/x.md", "a/.b/x.md", "x.py", "x", "md", "x.md.bak"]


@pytest.mark.parametrize("name", SKIPPED)
def test_hidden_files_and_other_kinds_are_left_out(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    assert found(tmp_path) == {}


def test_links_pipes_and_folders_are_left_out(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/secret.md")
    inside = tmp_path / "inside"
    write(inside / "kept.md")
    (inside / "link.md").symlink_to(outside)
    (inside / "sibling.md").symlink_to(inside / "kept.md")
    (inside / "broken.md").symlink_to(inside / "nothing.md")
    (inside / "linked").symlink_to(outside.parent)
    (inside / "loop").symlink_to(inside)
    (inside / "folder.md").mkdir()
    os.mkfifo(inside / "pipe.md")
    assert found(inside) == {"kept.md": "text"}


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real/a.md")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert found(tmp_path / "link") == {"a.md": "text"}


def test_a_folder_that_is_missing_or_none_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for folder in (tmp_path / "missing", write(tmp_path / "file.md"), tmp_path / "circle"):
        assert found(folder) == {}


def test_a_file_of_the_greatest_size_is_read_and_a_bigger_one_is_not(tmp_path: Path) -> None:
    write(tmp_path / "fits.md", b"x" * MAX_FILE_BYTES)
    write(tmp_path / "too_big.md", b"x" * (MAX_FILE_BYTES + 1))
    assert found(tmp_path) == {"fits.md": "x" * MAX_FILE_BYTES}


def test_only_so_many_files_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILES", 2)
    for name in ("a.md", "b.md", "c.md", "d/e.md"):
        write(tmp_path / name)
    assert list(found(tmp_path)) == ["a.md", "b.md"]


def test_only_so_many_levels_are_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_DEPTH", 1)
    for name in ("a.md", "b/c.md", "b/d/e.md"):
        write(tmp_path / name)
    assert list(found(tmp_path)) == ["a.md", "b/c.md"]


def test_bytes_that_are_not_utf_8_are_replaced_and_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    write(tmp_path / "a.md", b"\xef\xbb\xbfcaf\xe9 \xff")
    assert found(tmp_path) == {"a.md": "caf\ufffd \ufffd"}


def test_a_name_that_json_cannot_hold_is_left_out(tmp_path: Path) -> None:
    try:
        write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")))
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    write(tmp_path / "narrow\u202fspace.md")
    assert list(found(tmp_path)) == ["narrow\u202fspace.md"]


def test_what_takes_a_files_place_during_the_walk_is_not_read(tmp_path: Path) -> None:
    secret = write(tmp_path / "outside/secret.md")

    def vanish(path: Path) -> None:
        path.unlink()

    def become_a_link(path: Path) -> None:
        path.unlink()
        path.symlink_to(secret)

    def become_a_pipe(path: Path) -> None:
        path.unlink()
        os.mkfifo(path)

    def become_a_folder(path: Path) -> None:
        path.unlink()
        path.mkdir()

    def grow(path: Path) -> None:
        os.truncate(path, MAX_FILE_BYTES + 1)

    for change in (vanish, become_a_link, become_a_pipe, become_a_folder, grow):
        path = write(tmp_path / change.__name__ / "a.md")
        for file in text_files(path.parent):
            change(path)
            assert file.read() is None, change.__name__


def test_a_folder_that_becomes_a_link_during_the_walk_is_not_entered(tmp_path: Path) -> None:
    write(tmp_path / "outside/secret.md")
    write(tmp_path / "inside/a.md")
    below = write(tmp_path / "inside/below/b.md").parent
    names: list[str] = []
    for file in text_files(tmp_path / "inside"):
        names.append(file.path)
        if below.is_dir() and not below.is_symlink():
            below.rename(tmp_path / "away")
            below.symlink_to(tmp_path / "outside")
    assert names == ["a.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "closed.md").chmod(0)
    write(tmp_path / "open.md")
    assert found(tmp_path) == {"closed.md": None, "open.md": "text"}


def test_a_walk_leaves_no_descriptor_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILES", 1)
    for name in ("a/b/x.md", "a/b/y.md"):
        write(tmp_path / name)
    before = len(list(Path("/dev/fd").iterdir()))
    assert found(tmp_path) == {"a/b/x.md": "text"}
    assert len(list(Path("/dev/fd").iterdir())) == before
