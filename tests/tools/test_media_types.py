"""Media types: which are valid, and what kind of data they are."""

from __future__ import annotations

import pytest

from portbook.tools.media_types import is_media_type


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
