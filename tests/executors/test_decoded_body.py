"""Bodies of responses as values and as content, by their content types."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from portbook.executors.http_response import NotDecoded, content_of, value_of_body

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
    (b"\xff", "text/plain; charset=us-ascii", "the answer is not text in ASCII"),
    (b"a", "text/plain; charset=idna", "the answer is text in a charset that is not supported"),
    (b"a", "text/plain; charset=unicode_escape", "the answer is text in a charset that is not supported"),
    (b"a", "text/plain; charset=nothing", "the answer is text in a charset that is not supported"),
]


@pytest.mark.parametrize(("body", "sent", "why"), WRONG)
def test_a_body_that_is_not_of_its_type_is_told(body: bytes, sent: str, why: str) -> None:
    with pytest.raises(NotDecoded) as caught:
        value_of_body(body, sent)
    assert str(caught.value) == why


CHARSETS = [
    "utf8", "utf-8", "UTF_8", "ascii", "us-ascii", "ANSI_X3.4-1968", "latin1", "latin-1", "Latin_1", "l1",
    "ISO8859-1", "iso-8859-2", "iso-8859-15", "iso-8859-8-i", "cp1252", "windows-1251", "windows-874",
    "windows-31j", "ibm866", "koi8-r", "koi8-u", "macintosh", "x-mac-cyrillic", "utf-16le", "utf-16be",
    "utf-32", "gbk", "x-gbk", "gb2312", "gb18030", "big5", "big5-hkscs", "euc-jp", "euc-kr", "iso-2022-jp",
    "shift_jis", "x-sjis", "ks_c_5601-1987",
]  # fmt: skip
WIDE = {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be", "utf-32": "utf-32"}


@pytest.mark.parametrize("charset", CHARSETS)
def test_every_charset_of_the_web_is_known_by_its_names(charset: str) -> None:
    body = "a".encode(WIDE.get(charset, "ascii"))
    assert value_of_body(body, f"text/plain; charset={charset}") == "a"


@pytest.mark.parametrize("charset", ["nothing", "idna", "unicode_escape", "utf-7", "rot13", "hex", "."])
def test_text_in_an_unknown_charset_is_binary_data_where_that_may_be(charset: str) -> None:
    sent = f"text/plain; charset={charset}"
    encoded = base64.b64encode(b"\xff").decode()
    assert value_of_body(b"\xff", sent, may_be_binary=True) == {
        "content_type": "text/plain",
        "base64": encoded,
    }
    (block,) = content_of(b"\xff", sent)  # type: ignore[misc,str-unpack]
    assert block["resource"]["blob"] == encoded  # type: ignore[index]


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
