"""The `Link` header of a response: what is a link of it, and what of that is given."""

from __future__ import annotations

import pytest

from portbook.executors.http_response import links_of

NEXT = {"url": "/a?page=2", "rel": "next"}

HEADERS: list[tuple[str, str, list[dict[str, str]]]] = [
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
    ("a semicolon", "</d?a=1;key=5;b=2>; rel=next", [{"url": "/d?a=1;b=2", "rel": "next"}]),
    ("a credential in brackets", "</d?key[]=5&[key]=5&a=1>; rel=next", [{"url": "/d?a=1", "rel": "next"}]),
    ("a credential after an entity", "</d?a=1&amp;key=5>; rel=next", [{"url": "/d?a=1&amp", "rel": "next"}]),
    ("a credential without a value", "</d?key>; rel=next", [{"url": "/d", "rel": "next"}]),
    ("a longer name", "</d?keys=5>; rel=next", [{"url": "/d?keys=5", "rel": "next"}]),
    ("a fragment", "</d?a=1#key=5>; rel=next", [{"url": "/d?a=1", "rel": "next"}]),
    ("only a fragment", "<#key=5>; rel=next", []),
    ("backslashes", r"<https:\\a:b@c.example/>; rel=next", []),
    ("one slash", "<https:/a:b@c.example/>; rel=next", []),
    ("no slash", "<https:a:b@c.example>; rel=next", []),
    ("three slashes", "<///a:b@c.example/>; rel=next", []),
    ("a host without a scheme", "<//a:b@c.example/d>; rel=next", [{"url": "//c.example/d", "rel": "next"}]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "header", "expected"), HEADERS, ids=[row[0] for row in HEADERS])
def test_links_are_given_without_credentials(what: str, header: str, expected: list[object]) -> None:
    assert list(links_of(header, {"key"})) == expected


def test_links_are_bounded() -> None:
    assert len(links_of(", ".join(["</a>; rel=next"] * 500))) == 16
