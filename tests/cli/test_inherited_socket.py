"""The descriptors of a watching process: taken once, and not passed on."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from portbook.cli.serve_reload import TAKE_OVER, Inherited


@pytest.fixture
def descriptors() -> Iterator[list[int]]:
    opened = [*os.pipe(), *os.pipe()]
    for each in opened:
        os.set_inheritable(each, True)
    yield opened
    for each in opened:
        os.close(each)


def test_they_are_taken_once_and_what_the_server_starts_does_not_have_them(
    monkeypatch: pytest.MonkeyPatch, descriptors: list[int]
) -> None:
    listener, pipe, lifeline, _ = descriptors
    monkeypatch.setenv(TAKE_OVER, f"{listener},{pipe},{lifeline}")
    inherited = Inherited.of_environment()
    assert inherited == (listener, pipe, lifeline)
    assert not any(os.get_inheritable(each) for each in (listener, pipe, lifeline))
    assert TAKE_OVER not in os.environ
    assert Inherited.of_environment() is None


def test_the_process_is_told_to_end_once_the_other_end_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    lifeline, life = os.pipe()
    ended = threading.Event()
    sent: list[tuple[int, int]] = []

    def kill(process: int, number: int) -> None:
        sent.append((process, number))
        ended.set()

    monkeypatch.setattr(os, "kill", kill)
    Inherited(-1, -1, lifeline).end_with_the_watcher()
    assert not ended.is_set()
    os.close(life)
    assert ended.wait(30)
    assert sent == [(os.getpid(), signal.SIGTERM)]
    os.close(lifeline)
