"""TOML files: what is wrong with the syntax is told with line, column and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.settings import BadSettings
from portbook.settings.toml_file import read_toml
from support.settings_files import case


def complaint(folder: Path, content: bytes) -> str:
    path = folder / "some.toml"
    path.write_bytes(content)
    with pytest.raises(BadSettings) as raised:
        read_toml(path, "some.toml")
    return str(raised.value)


def test_a_file_knows_its_values_and_their_places(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text('a = 1\r\n[b]\r\nc = { d = "ü", e = 2 }\r\n')
    file = read_toml(path, "shown.toml")
    assert file.document == {"a": 1, "b": {"c": {"d": "ü", "e": 2}}}
    assert file.place(("b", "c", "e")) == "shown.toml:3:16"
    assert file.line(("b", "c")) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        case(
            "a byte that is not UTF-8",
            b'a = "\xc3\xbc"\nb = "\xff"',
            "2:6: not UTF-8; save the file",
        ),
        case("a byte order mark", b"\xef\xbb\xbfa = 1", "1:1: begins with a byte order mark; save"),
        case("the end of the document", b"a = 1\nb = ", "2:5: not TOML: invalid value; write strings"),
        case("too deep", b"a = 1\nb = " + b"[" * 100_000, "2:105: nested too deeply; use tables"),
        case("an escape that is none", b'a = "\\uD800"', "1:12: not TOML: escaped character is not"),
    ],
)
def test_what_is_wrong_is_told_with_line_and_column(content: bytes, said: str, tmp_path: Path) -> None:
    assert complaint(tmp_path, content).startswith(f"some.toml:{said}")


def test_a_file_that_cannot_be_read_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"^x\.toml: cannot be read: Is a directory; check its path"):
        read_toml(tmp_path, "x.toml")
