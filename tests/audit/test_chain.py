"""The links of a chain: read as they are written, and nothing else is read as one."""

from __future__ import annotations

import pytest

from portbook.audit.chain import GENESIS, Head, Links

HASH = "0123456789abcdef" * 4


@pytest.mark.parametrize("text", ["", "a", "a#1", f"a#0:{HASH}", "a#1:xyz", f"a/b#1:{HASH}", f"a b#1:{HASH}"])
def test_what_is_no_head_is_not_read_as_one(text: str) -> None:
    assert Head.read(text) is None
    assert Links.read(text) is None
    assert Links.read(f"a#1:{HASH} {text}") is None


@pytest.mark.parametrize(
    ("text", "links"),
    [
        (GENESIS, Links()),
        (f"a#1:{HASH}", Links((Head("a", 1, HASH),))),
        (f"a#1:{HASH} b#20:{HASH}", Links((Head("a", 1, HASH), Head("b", 20, HASH)))),
        (f"a#1:{HASH} from b", Links((Head("a", 1, HASH),), "b")),
        (
            f"from#1:{HASH} from#2:{HASH} from from",
            Links((Head("from", 1, HASH), Head("from", 2, HASH)), "from"),
        ),
    ],
)
def test_links_are_read_as_they_are_written(text: str, links: Links) -> None:
    assert Links.read(text) == links
    assert str(links) == text


@pytest.mark.parametrize("text", [f"{GENESIS} from a", "from a", f"a#1:{HASH} from", f"a#1:{HASH} from b c"])
def test_what_is_no_link_is_not_read_as_one(text: str) -> None:
    assert Links.read(text) is None
