"""`portbook.lock`: sections that do not disturb each other, and what is no lock."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from portbook.model import JSONObject
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.stores.lock_file import LOCK_NAME, LockFile, LockSection, change_section


def test_a_folder_without_a_lock_has_empty_sections(tmp_path: Path) -> None:
    assert LockFile.read(tmp_path).section("mcp") == LockSection("mcp")


def test_changing_one_section_keeps_the_other(tmp_path: Path) -> None:
    change_section(tmp_path, "openapi", lambda _: {"b": 1})
    change_section(tmp_path, "mcp", lambda _: {"a": [1]})
    change_section(tmp_path, "openapi", lambda section: {**section.entries, "c": 2})
    assert (tmp_path / LOCK_NAME).read_text() == (
        '{\n  "mcp": {\n    "a": [\n      1\n    ]\n  },\n  "openapi": {\n    "b": 1,\n    "c": 2\n  }\n}\n'
    )
    assert LockFile.read(tmp_path).section("mcp").entries == {"a": [1]}


def test_a_review_sees_hidden_characters_and_reads_the_others(tmp_path: Path) -> None:
    change_section(tmp_path, "mcp", lambda _: {"words": "Grüße\u200b, 世界\u202e"})
    assert '"Grüße\\u200b, 世界\\u202e"' in (tmp_path / LOCK_NAME).read_text("utf-8")
    assert LockFile.read(tmp_path).section("mcp").entries == {"words": "Grüße\u200b, 世界\u202e"}


def test_processes_that_change_the_lock_at_once_take_turns(tmp_path: Path) -> None:
    def add(number: int) -> None:
        def change(section: LockSection) -> JSONObject:
            return {**section.entries, f"n{number}": number}

        change_section(tmp_path, "mcp", change)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(LockFile.read(tmp_path).section("mcp").entries) == 16


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "portbook.lock:1: not valid JSON: "),
        ("{\n\n  7}", "portbook.lock:3: not valid JSON: "),
        ('{"mcp": {"a": 1,\n "a": 2}}', "portbook.lock:2: not valid JSON: an object has the same key twice"),
        ("[" * 100_000, "portbook.lock:1: not valid JSON: nested deeper"),
        ("[]", "portbook.lock:1: must be one JSON object; restore the file"),
        ('{\n"mcp": 7}', "portbook.lock:2: /mcp: must be an object; restore the file, or remove the section"),
        ('{\n"secret": {}}', "portbook.lock:2: has a section that this version does not know"),
    ],
)
def test_what_is_no_lock_is_refused_with_its_line_and_what_to_do(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / LOCK_NAME).write_text(text)
    with pytest.raises(BadLock) as caught:
        LockFile.read(tmp_path)
    assert str(caught.value).startswith(message)
    with pytest.raises(BadLock):
        change_section(tmp_path, "mcp", lambda _: {})
    assert (tmp_path / LOCK_NAME).read_text() == text


def test_a_lock_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).mkdir()
    with pytest.raises(BadLock, match=r"portbook\.lock cannot be read: "):
        LockFile.read(tmp_path)
