"""Bodies of responses as values and as content, by their content types."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from portbook.executors.decoded_body import NotDecoded, content_of, value_of_body

VALUES: list[tuple[str, bytes, str, Any]] = [
    ("JSON", b'{"a":1}', "application/json", {"a": 1}),
    ("a vendor's JSON", b"[1]", "application/vnd.x+json; version=2", [1]),
    ("JSON with a mark", b"\xef\xbb\xbf[1]", "application/json; charset=utf-8", [1]),
    ("text", "é\n".encode(), "text/plain", "é\n"),
    ("text with a mark", b"\xef\xbb\xbfa", "text/csv;charset=UTF-8", "a"),
    ("latin", b"\xe9", "text/plain; charset=ISO-8859-1", "é"),
    ("a quoted charset", b"\x93a\x94", 'text/html; Charset="windows-1252"', "“a”"),
    ("UTF-16", "é".encode("utf-16"), "text/plain;charset=utf-16", "é"),
    ("Japanese", "日本".encode("shift_jis"), "text/plain; charset=Shift_JIS", "日本"),
    ("XML", b"<a/>", "application/atom+xml", "<a/>"),
    ("a form", b"a=1", "application/x-www-form-urlencoded", "a=1"),
    ("binary data", b"\x00\xff", "application/pdf", {"content_type": "application/pdf", "base64": "AP8="}),
]


@pytest.mark.parametrize(("what", "body", "sent", "value"), VALUES, ids=[row[0] for row in VALUES])
def test_a_body_is_a_value_of_its_type(what: str, body: bytes, sent: str, value: Any) -> None:
    assert value_of_body(body, sent) == value


WRONG = [
    (b"{", "application/json", "the answer is not strict JSON"),
    (b"\xff", "text/plain", "the answer is not text in UTF-8"),
    (b"\xff", "text/plain; charset=us-ascii", "the answer is not text in US-ASCII"),
    (b"a", "text/plain; charset=idna", "the answer is text in a charset that is not supported"),
    (b"a", "text/plain; charset=unicode_escape", "the answer is text in a charset that is not supported"),
    (b"a", "text/plain; charset=nothing", "the answer is text in a charset that is not supported"),
]


@pytest.mark.parametrize(("body", "sent", "why"), WRONG)
def test_a_body_that_is_not_of_its_type_is_told(body: bytes, sent: str, why: str) -> None:
    with pytest.raises(NotDecoded) as caught:
        value_of_body(body, sent)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    "charset",
    [
        "utf8", "utf-8", "ascii", "us-ascii", "latin1", "iso-8859-2", "iso-8859-15", "windows-1251",
        "koi8-r", "koi8-u", "macintosh", "utf-16le", "utf-16be", "gbk", "gb2312", "gb18030",
        "big5", "euc-jp", "euc-kr", "iso-2022-jp", "shift_jis",
    ],
)  # fmt: skip
def test_every_charset_that_is_supported_exists(charset: str) -> None:
    assert value_of_body("a".encode(charset), f"text/plain; charset={charset}") == "a"


def test_binary_data_is_content() -> None:
    data, encoded = b"\x00\xff", base64.b64encode(b"\x00\xff").decode()
    assert content_of(data, "image/png") == [{"type": "image", "data": encoded, "mimeType": "image/png"}]
    assert content_of(data, "audio/ogg") == [{"type": "audio", "data": encoded, "mimeType": "audio/ogg"}]
    assert content_of(data, "application/pdf; x=1") == [
        {
            "type": "resource",
            "resource": {
                "uri": "ni:///sha-256;But9amnuGeX733SQGNPSq_oEvL0TZdsxLrhtxxaTibg",
                "mimeType": "application/pdf",
                "blob": encoded,
            },
        }
    ]
    assert content_of(b"no such picture", "text/plain") == [{"type": "text", "text": "no such picture"}]
