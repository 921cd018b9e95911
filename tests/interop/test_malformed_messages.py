"""The page that compares answers to malformed messages: Portbook's column is what Portbook answers now.

The other columns need the official servers, and are made by scripts/compare-malformed alone.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

from support import sdks
from support.portbook_process import ROOT


def _script() -> ModuleType:
    name = "portbook_compare_malformed"
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / "compare_malformed.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


COMPARE: Any = _script()
PORTBOOK = COMPARE.portbook()
PROCESSES = 5  # several messages for each, to spare starts; the page is made with a process for each


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    def observe(messages: list[Any]) -> dict[str, Any]:
        with COMPARE.conversation(PORTBOOK) as talk:
            return {message.title: COMPARE.observe_in(talk, PORTBOOK, message) for message in messages}

    shares = [COMPARE.MESSAGES[start::PROCESSES] for start in range(PROCESSES)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        return {title: found for share in pool.map(observe, shares) for title, found in share.items()}


def rows() -> dict[str, list[str]]:
    """Return the cells of the comparison by message."""
    lines = COMPARE.PAGE.read_text("utf-8").partition("\n| message |")[2].partition("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]
    return {row[0]: row[1:] for row in cells}


@pytest.mark.parametrize("message", COMPARE.MESSAGES, ids=lambda message: message.title)
def test_a_malformed_message_is_answered_as_the_specifications_ask(
    message: Any, seen: dict[str, Any]
) -> None:
    found = seen[message.title]
    assert COMPARE.is_as_asked(found, message), COMPARE.words(found, message)


@pytest.mark.parametrize("message", COMPARE.MESSAGES, ids=lambda message: message.title)
def test_the_page_says_what_portbook_answers_now(message: Any, seen: dict[str, Any]) -> None:
    now = COMPARE.words(seen[message.title], message)
    assert rows()[message.title][1] == now, "stale: run scripts/compare-malformed"


def test_the_page_has_every_message_and_no_other() -> None:
    assert list(rows()) == [message.title for message in COMPARE.MESSAGES]


def test_the_page_is_of_the_versions_that_are_pinned() -> None:
    page = COMPARE.PAGE.read_text("utf-8")
    for pinned in (sdks.PYTHON_SDK, sdks.REFERENCE_SERVERS, sdks.TYPESCRIPT_SDK):
        assert f"` {pinned}" in page, "stale: run scripts/compare-malformed"
    assert page.startswith(COMPARE.NOTICE)
