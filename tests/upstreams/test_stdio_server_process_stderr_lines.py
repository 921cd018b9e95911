"""Standard error of a server: whole lines for the operator, however much there is of it."""

from __future__ import annotations

from portbook.upstreams.stdio_server_process import StderrLines


def lines_of(*chunks: bytes, at: float = 0.0) -> tuple[list[str], StderrLines]:
    told: list[str] = []
    lines = StderrLines(told.append, lambda: at, str)
    for chunk in chunks:
        lines.feed(chunk)
    return told, lines


def test_lines_are_told_once_they_are_whole() -> None:
    told, lines = lines_of(b"one\ntw", b"o\n\n", b"three")
    assert told == ["one", "two"]
    lines.close()
    assert told == ["one", "two", "three"]
    assert lines.last == "three"


def test_a_line_is_cut_and_its_rest_dropped() -> None:
    told, _ = lines_of(b"x" * 5000, b"y" * 5000 + b"\nnext\n")
    assert len(told) == 2
    assert len(told[0]) < 1100
    assert told[1] == "next"


def test_of_a_flood_a_few_lines_a_second_are_told_and_the_rest_counted() -> None:
    told, lines = lines_of(b"again\n" * 1000)
    lines.close()
    assert len(told) == 51
    assert told[-1] == "[950 lines were left out]"


def test_control_characters_do_not_reach_the_terminal() -> None:
    told, _ = lines_of(b"\x1b[2Jgone\n")
    assert "\x1b" not in told[0]


def test_a_line_is_redacted_before_it_is_told_or_kept() -> None:
    told: list[str] = []
    lines = StderrLines(told.append, lambda: 0.0, lambda text: text.replace("s3cr3t", "[redacted]"))
    lines.feed(b"died with s3cr3t\n")
    assert (told, lines.last) == (["died with [redacted]"], "died with [redacted]")
