"""`[[keys.allow]]`: each mistake is told at the line of its own key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.settings_files import complaint

DIGEST = "a" * 64
GOOD = f'[[keys.allow]]\nname = "ada"\nsha256 = "{DIGEST}"\n'


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (
            f'name = "bob"\nsha265 = "{DIGEST}"',
            "'sha265' is not part of [[keys.allow]]; did you mean sha",
        ),
        ('name = "bob"', "each [[keys.allow]] needs name and sha256, and may have tools"),
        ('name = "bob"\nsha256 = "short"', "keys.allow 'bob': sha256 must be 64 hexadecimal digits"),
        (f'name = "operator"\nsha256 = "{DIGEST}"', "keys.allow 'operator': this name is reserved"),
        (f'name = "bob"\nsha256 = "{DIGEST}"\ntools = "all"', "keys.allow 'bob': tools must be a list"),
    ],
)
def test_a_bad_second_key_is_told_at_its_own_line(tmp_path: Path, second: str, words: str) -> None:
    said = complaint(tmp_path, f"{GOOD}\n[[keys.allow]]\n{second}\n")
    assert re.match(rf"portbook\.toml:[5-8]:1: {re.escape(words)}", said)
