from __future__ import annotations

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
        ("a://{x}", "a://b%2Fc%20d", {"x": "b/c d"}),
        ("a://{x}", "a://b?q", None),
        ("a://b.c/{x}", "a://bxc/1", None),
    ],
)
def test_an_address_is_read_backwards(template: str, uri: str, found: dict[str, str] | None) -> None:
    assert UriTemplate(template).match(uri) == found


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


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=50))
def test_whatever_is_filled_in_comes_out_again(value: str) -> None:
    from urllib.parse import quote

    assert UriTemplate("a://{x}/d").match(f"a://{quote(value, safe='')}/d") == {"x": value}


@pytest.mark.timeout(20)  # which one way of trying after the other would take years to reach
def test_an_address_made_to_be_slow_is_not() -> None:
    template = UriTemplate("a://" + "-".join(f"{{x{number}}}" for number in range(12)) + "/end")
    assert template.match("a://" + "-" * 2000) is None
    assert template.match("a://" + "a-" * 1000) is None
    assert template.match("a://" + "a" * 1_000_000) is None
