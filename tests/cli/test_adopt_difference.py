"""Differences of an adoption: `patch` makes the new file of the old one, and no secret is in them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click
import pytest

from portbook.adopt.file_change import FileChange
from portbook.cli.adopt_difference import difference, shown_lines


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\nc\n", b"a\nx\nc\n"),
        (b"a\nb", b"a\nc"),
        (b"a\nb", b"a\nb\n"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfc\nb\n"),
        ("a\u2028b\x0bc\x85\nd\n".encode(), "a\u2028b\x0bc\x85\ne\n".encode()),
        (b"\ta\n\x1b\n", b"\tb\n\x1b\n"),
        (None, b"new\n"),
        (None, b"new"),
    ],
)
def test_patch_makes_the_new_file_of_the_old_one(tmp_path: Path, before: bytes | None, after: bytes) -> None:
    file = tmp_path / "file"
    if before is not None:
        file.write_bytes(before)
    text = difference(FileChange(file, before, after, 0o600), ())
    subprocess.run(
        ["patch", "--binary", "-p0", "-d", "/"], input=text.encode(), check=True, capture_output=True
    )
    assert file.read_bytes() == after


def test_secrets_are_masked_however_they_are_written() -> None:
    secret, short = 'it"s\u00e9cret', "ab1"
    before = b'{"a": "it\\"s\\u00e9cret", "b": "it\\"s\xc3\xa9cret", "c": "ab1", "d": "crab1s"}\n'
    text = difference(FileChange(Path("/f"), before, b"{}\n", 0o600), (secret, short, ""))
    assert '-{"a": "[redacted]", "b": "[redacted]", "c": "[redacted]", "d": "crab1s"}\n' in text


def test_a_terminal_gets_colours_and_no_control_character() -> None:
    change = FileChange(Path("/f"), b"\ta\r\n", b"\t\x1b[8m\r\n", 0o600)
    lines = list(shown_lines(difference(change, ())))
    assert lines[-1] == click.style("+\t\\x1b[8m", fg="green")
    assert [click.unstyle(line) for line in lines] == [
        "--- /f",
        "+++ /f",
        "@@ -1 +1 @@",
        "-\ta",
        "+\t\\x1b[8m",
    ]
