from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import portbook
from portbook.text.late_pattern import late_pattern


def test_it_matches_like_any_other() -> None:
    pattern = late_pattern(r"a+", re.IGNORECASE)
    assert pattern.fullmatch("aA") is not None
    assert pattern.fullmatch("b") is None
    assert late_pattern(rb"a").search(b"ba") is not None


def test_it_is_compiled_with_its_first_use_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def compile_it(text: str, flags: int) -> re.Pattern[str]:
        compiled.append(text)
        return real(text, flags)

    real = re.compile
    monkeypatch.setattr(re, "compile", compile_it)
    pattern = late_pattern(r"once")
    assert compiled == []
    assert [bool(pattern.match(text)) for text in ("once", "twice", "once")] == [True, False, True]
    assert compiled == ["once"]


def test_every_late_pattern_of_the_package_compiles() -> None:
    kind = type(late_pattern(""))
    late: list[re.Pattern[str]] = []
    for found in pkgutil.walk_packages(portbook.__path__, "portbook."):
        if not found.name.endswith(("__main__", ".plugin", ".adapter")):
            module = importlib.import_module(found.name)
            late += [value for value in vars(module).values() if type(value) is kind]
    assert len(late) > 30
    for pattern in late:
        assert re.compile(pattern.pattern, pattern.flags)
