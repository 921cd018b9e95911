"""What servers offer and cannot be served: told once, with its place, and within limits."""

from __future__ import annotations

from portbook.tools.catalog import LeftOutEntry
from portbook.upstreams.served_offers import LeftOutReport


class Shop:
    def __init__(self) -> None:
        self.entries: list[LeftOutEntry] = []
        self.said: list[str] = []
        self.report = LeftOutReport(lambda: self.entries, self.said.append)


def entry(name: str, why: str = "it is wrong") -> LeftOutEntry:
    return LeftOutEntry("box", "tool", name, why)


def test_an_entry_is_told_once_and_again_after_it_was_served() -> None:
    shop = Shop()
    shop.report.place("box", "portbook.toml:3:1")
    shop.entries = [entry("a")]
    for _ in range(2):
        shop.report.tell_new()
    assert shop.said == ["portbook.toml:3:1: mcp.box: tool 'a' is not served: it is wrong"]
    shop.entries = []
    shop.report.tell_new()
    shop.entries = [entry("a")]
    shop.report.tell_new()
    assert len(shop.said) == 2


def test_a_server_with_many_of_them_fills_no_log() -> None:
    shop = Shop()
    shop.entries = [entry(f"tool {at}") for at in range(5000)]
    shop.report.tell_new()
    assert len(shop.said) == 11
    assert shop.said[-1].startswith("4990 more entries")
    assert len(shop.report.sentences()) == 5000


def test_a_name_breaks_no_line_and_is_short() -> None:
    shop = Shop()
    shop.entries = [entry("a\x1b[2J\n\u202eb" + "x" * 5000)]
    shop.report.tell_new()
    [said] = shop.said
    assert said.isprintable()
    assert len(said) < 200


def test_a_completion_is_told_with_its_prompt() -> None:
    shop = Shop()
    shop.entries = [LeftOutEntry("box", "completion", "p", "why"), LeftOutEntry("box", "prompt", "p", "why")]
    assert shop.report.sentences() == ["mcp.box: prompt 'p' is not served: why"]
