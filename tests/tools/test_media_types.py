"""Media types: which are valid, and what kind of data they are."""

from __future__ import annotations

import pytest

from portbook.tools.media_types import (
    MediaKind,
    is_in_range,
    is_media_range,
    is_media_type,
    kind_of,
    plain_type,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("application/json", True),
        ("application/vnd.x_y.v1+json", True),
        ("text/csv", True),
        ("", False),
        ("json", False),
        ("text/*", False),
        ("*/*", False),
        ("Text/CSV", False),
        ("text/csv; charset=utf-8", False),
        ("text/csv\n", False),
        ("application/x\r\nX-Evil: 1\r\nX+json", False),
        ("text/é", False),
    ],
)
def test_a_content_type_is_one_that_a_header_can_name(text: str, expected: bool) -> None:
    assert is_media_type(text) is expected


KINDS = [
    ("application/json", MediaKind.JSON),
    ("Application/JSON; charset=utf-8", MediaKind.JSON),
    ("application/vnd.x+json", MediaKind.JSON),
    ("text/json", MediaKind.JSON),
    ("*/*", MediaKind.JSON),
    ("application/*", MediaKind.JSON),
    ("application/x-www-form-urlencoded", MediaKind.FORM),
    ("multipart/form-data; boundary=x", MediaKind.MULTIPART),
    ("text/html", MediaKind.TEXT),
    ("text/*", MediaKind.TEXT),
    ("application/xml", MediaKind.TEXT),
    ("image/svg+xml", MediaKind.TEXT),
    ("application/x-ndjson", MediaKind.TEXT),
    ("image/png", MediaKind.BINARY),
    ("image/*", MediaKind.BINARY),
    ("application/pdf", MediaKind.BINARY),
    ("nonsense", MediaKind.BINARY),
]


@pytest.mark.parametrize(("media", "kind"), KINDS)
def test_a_media_type_is_of_one_kind(media: str, kind: MediaKind) -> None:
    assert kind_of(media) is kind


@pytest.mark.parametrize(
    ("media", "sent"),
    [
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/*; q=1", "text/plain"),
        ("image/*", "application/octet-stream"),
        ("Text/CSV; header=present", "text/csv"),
    ],
)
def test_a_wildcard_is_sent_as_the_plainest_type_of_its_kind(media: str, sent: str) -> None:
    assert plain_type(media) == sent


@pytest.mark.parametrize(
    ("text", "expected"),
    [("*/*", True), ("image/*", True), ("image/png", True), ("*/json", False), ("*", False)],
)
def test_a_range_is_a_type_or_all_types_of_a_kind(text: str, expected: bool) -> None:
    assert is_media_range(text) is expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("image/png", True), ("image/*", True), ("*/*", True), ("image/p", False), ("text/*", False)],
)
def test_a_type_is_in_its_ranges(wanted: str, expected: bool) -> None:
    assert is_in_range("image/png", wanted) is expected
