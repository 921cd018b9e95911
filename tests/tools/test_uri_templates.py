from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.tools.spec import BadTool
from portbook.tools.uri_templates import UriTemplate


@pytest.mark.parametrize(
    ("template", "uri", "found"),
    [
        ("a://b", "a://b", {}),
        ("a://b", "a://bc", None),
        ("a://{x}", "a://1", {"x": "1"}),
        ("a://{x}", "a://1/2", None),
        ("a://{x}", "a://", None),
        ("a://{x}/d", "a://1/d", {"x": "1"}),
        ("a://{x}-{y}", "a://1-2-3", {"x": "1", "y": "2-3"}),
        ("a://{x}-{y}", "a://1-2", {"x": "1", "y": "2"}),
        ("a://{+path}", "a://b/c/d", {"path": "b/c/d"}),
        ("a://{+path}/end", "a://b/c/end", {"path": "b/c"}),
        ("a://{x}", "a://b%20d%3F", {"x": "b d?"}),
        ("a://{+path}", "a://b%2Fc%20d", {"path": "b/c d"}),
        ("a://{x}", "a://b?q", None),
        ("a://b.c/{x}", "a://bxc/1", None),
    ],
)
def test_an_address_is_read_backwards(template: str, uri: str, found: dict[str, str] | None) -> None:
    assert UriTemplate(template).match(uri) == found


@pytest.mark.parametrize("template", ["a://{x}", "a://{+x}", "a://b/{x}.txt"])
@pytest.mark.parametrize(
    "value",
    [
        "..",
        ".",
        "%2e%2E",
        "..%2F..%2Fetc",
        "..%5C..%5Cetc",
        "b%2F..%2Fc",
        "b%5C..",
        "%2Fetc",
        "%5C%5Chost",
        "b%00",
        "b%0Ac",
        "%7F",
        "%C2%85",
        "%FF",
        "b\nc",
    ],
)
def test_a_value_that_would_lead_elsewhere_fits_nothing(template: str, value: str) -> None:
    uri = template.replace("{+x}", "{x}").replace("{x}", value)
    assert UriTemplate(template).match(uri) is None


@pytest.mark.parametrize("value", ["b%2Fc", "b%2fc", "b%5Cc", "b\\c"])
def test_one_segment_stays_one_when_it_is_decoded(value: str) -> None:
    assert UriTemplate("a://{x}").match(f"a://{value}") is None


@pytest.mark.parametrize(
    "template",
    [
        "",
        "no scheme",
        "a://{",
        "a://{x",
        "a://{x}{y}",
        "a://{x}/{x}",
        "a://{+x}/{+y}",
        "a://{?q}",
        "a://{1}",
        "a://\n",
    ],
)
def test_what_cannot_be_read_backwards_is_refused(template: str) -> None:
    with pytest.raises(BadTool):
        UriTemplate(template)


SEGMENTS = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("Cc",), exclude_characters="/\\"),
    min_size=1,
    max_size=50,
).filter(lambda value: value not in (".", ".."))


@given(SEGMENTS)
def test_whatever_is_filled_in_comes_out_again(value: str) -> None:
    assert UriTemplate("a://{x}/d").match(f"a://{quote(value, safe='')}/d") == {"x": value}


@given(st.lists(SEGMENTS, min_size=1, max_size=5).map("/".join))
def test_whatever_path_is_filled_in_comes_out_again(value: str) -> None:
    assert UriTemplate("a://{+x}/d").match(f"a://{quote(value)}/d") == {"x": value}


@pytest.mark.timeout(20)  # which one way of trying after the other would take years to reach
def test_an_address_made_to_be_slow_is_not() -> None:
    template = UriTemplate("a://" + "-".join(f"{{x{number}}}" for number in range(12)) + "/end")
    assert template.match("a://" + "-" * 2000) is None
    assert template.match("a://" + "a-" * 1000) is None
    assert template.match("a://" + "a" * 1_000_000) is None
