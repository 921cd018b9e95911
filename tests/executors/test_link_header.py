"""The `Link` header of a response: what is a link of it, and what of that is given."""

from __future__ import annotations

import pytest

from portbook.executors.link_header import links_of

NEXT = {"url": "/a?page=2", "rel": "next"}

HEADERS = [
    ("a quoted relation", '</a?page=2>; rel="next"', [NEXT]),
    ("a token", "</a?page=2>;rel=next", [NEXT]),
    ("two", '</a?page=2>; rel="next", </a?page=9>; rel="last"', [NEXT, {"url": "/a?page=9", "rel": "last"}]),
    ("a comma in a URL", "</a?b=1,2>; rel=next", [{"url": "/a?b=1,2", "rel": "next"}]),
    ("a comma in a title", '</b>; title="x, <y>"; rel=up, </a?page=2>; rel=next',
     [{"url": "/b", "rel": "up"}, NEXT]),
    ("an escape", r'</b>; rel="a\"b"', [{"url": "/b", "rel": 'a"b'}]),
    ("two relations: the first counts", '</a?page=2>; rel="next"; rel="prev"', [NEXT]),
    ("other attributes", '</a?page=2>; type="text/html"; rel="next"; x', [NEXT]),
    ("capitals", '</a?page=2>; REL="next"', [NEXT]),
    ("no relation", "</b>; type=x, </a?page=2>; rel=next", [NEXT]),
    ("what is no link", "</a?page=2>; rel=next, b; rel=next, </c>; rel=last", [NEXT]),
    ("nothing", "", []),
    ("no target", "rel=next", []),
    ("an unclosed target", "</a", []),
    ("a URL with spaces", "</a b>; rel=next", []),
    ("not ASCII", "</é>; rel=next", []),
    ("another scheme", "<javascript:alert(1)>; rel=next", []),
    ("no URL", "<http://[/>; rel=next", []),
    ("a long URL", f"</{'a' * 3000}>; rel=next", []),
    ("a long relation", f"</a>; rel={'a' * 300}", []),
    ("user and password", "<https://a:b@c.example/d>; rel=next",
     [{"url": "https://c.example/d", "rel": "next"}]),
    ("a credential", "<https://c.example/d?Key=5&page=2>; rel=next",
     [{"url": "https://c.example/d?page=2", "rel": "next"}]),
    ("an encoded credential", "</d?k%65y=5>; rel=next", [{"url": "/d", "rel": "next"}]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "header", "expected"), HEADERS, ids=[row[0] for row in HEADERS])
def test_links_are_given_without_credentials(what: str, header: str, expected: list[object]) -> None:
    assert list(links_of(header, {"key"})) == expected


def test_links_are_bounded() -> None:
    assert len(links_of(", ".join(["</a>; rel=next"] * 500))) == 16
