"""Values as text: the tables of RFC 6570 and OpenAPI, and what a server reads back."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.apis.path_and_query_values import (
    AmbiguousText,
    Encode,
    as_form_text,
    as_is,
    as_reserved_text,
    as_uri_text,
    expanded,
    pairs_of,
)
from portbook.model import JSON
from portbook.tools.http_operation import Style

LIST: list[JSON] = ["blue", "black", "brown"]
OBJECT: dict[str, JSON] = {"R": 100, "G": 200, "B": 150}

# The table of "Style Examples" in OpenAPI 3.1.1, for the parameter `color`.
TEXTS: list[tuple[Style, JSON, str]] = [
    (Style.COMMA, "blue", "blue"),
    (Style.COMMA, LIST, "blue,black,brown"),
    (Style.COMMA, OBJECT, "R,100,G,200,B,150"),
    (Style.PAIRS, LIST, "blue,black,brown"),
    (Style.PAIRS, OBJECT, "R=100,G=200,B=150"),
    (Style.LABEL, "", "."),
    (Style.LABEL, "blue", ".blue"),
    (Style.LABEL, LIST, ".blue,black,brown"),
    (Style.LABEL, OBJECT, ".R,100,G,200,B,150"),
    (Style.LABEL_EXPLODED, LIST, ".blue.black.brown"),
    (Style.LABEL_EXPLODED, OBJECT, ".R=100.G=200.B=150"),
    (Style.MATRIX, "", ";color"),
    (Style.MATRIX, "blue", ";color=blue"),
    (Style.MATRIX, LIST, ";color=blue,black,brown"),
    (Style.MATRIX, OBJECT, ";color=R,100,G,200,B,150"),
    (Style.MATRIX_EXPLODED, LIST, ";color=blue;color=black;color=brown"),
    (Style.MATRIX_EXPLODED, OBJECT, ";R=100;G=200;B=150"),
    (Style.JSON, "blue", "%22blue%22"),
    (Style.JSON, OBJECT, "%7B%22R%22%3A100%2C%22G%22%3A200%2C%22B%22%3A150%7D"),
]


@pytest.mark.parametrize(("style", "value", "text"), TEXTS)
def test_one_text_is_that_of_the_specification(style: Style, value: JSON, text: str) -> None:
    assert expanded("color", value, style, as_uri_text) == text


PAIRS: list[tuple[Style, JSON, str]] = [
    (Style.SPREAD, "", "color="),
    (Style.SPREAD, "blue", "color=blue"),
    (Style.SPREAD, LIST, "color=blue&color=black&color=brown"),
    (Style.SPREAD, OBJECT, "R=100&G=200&B=150"),
    (Style.COMMA, "", "color="),
    (Style.COMMA, LIST, "color=blue,black,brown"),
    (Style.COMMA, OBJECT, "color=R,100,G,200,B,150"),
    (Style.SPACE, LIST, "color=blue%20black%20brown"),
    (Style.SPACE, OBJECT, "color=R%20100%20G%20200%20B%20150"),
    (Style.PIPE, LIST, "color=blue%7Cblack%7Cbrown"),
    (Style.PIPE, OBJECT, "color=R%7C100%7CG%7C200%7CB%7C150"),
    (Style.DEEP, OBJECT, "color[R]=100&color[G]=200&color[B]=150"),
    (Style.DEEP, [{"b": 1}, {"b": [True]}], "color[0][b]=1&color[1][b][0]=true"),
    (Style.DEEP, {"a": {"b": "c d", "n": None}}, "color[a][b]=c%20d"),
    (Style.DEEP, "blue", "color=blue"),
    *[(style, empty, "") for style in Style if style is not Style.JSON for empty in ([], None)],
    *[(style, {}, "") for style in (Style.SPREAD, Style.COMMA, Style.DEEP, Style.SPACE, Style.PIPE)],
]


@pytest.mark.parametrize(("style", "value", "text"), PAIRS)
def test_pairs_are_those_of_the_specification(style: Style, value: JSON, text: str) -> None:
    found = [f"{pair.name}={pair.text}" for pair in pairs_of("color", value, style, as_uri_text)]
    assert "&".join(found) == text


AMBIGUOUS: list[tuple[Style, Encode, JSON, str]] = [
    (Style.SPACE, as_uri_text, ["a b"], "a space"),
    (Style.SPACE, as_form_text, ["a b"], "a space"),
    (Style.PIPE, as_uri_text, ["c", "a|b"], "a pipe"),
    (Style.PIPE, as_uri_text, {"a|b": 1}, "a pipe"),
    (Style.COMMA, as_reserved_text, ["a,b"], "a comma"),
    (Style.COMMA, as_is, {"a": "b,c"}, "a comma"),
]


@pytest.mark.parametrize(("style", "encode", "value", "separator"), AMBIGUOUS)
def test_items_that_could_not_be_told_apart_are_no_pair(
    style: Style, encode: Encode, value: JSON, separator: str
) -> None:
    with pytest.raises(AmbiguousText, match=f"^has {separator} inside an item"):
        list(pairs_of("x", value, style, encode))


AMBIGUOUS_TEXTS: list[tuple[Style, Encode, JSON, str]] = [
    (Style.COMMA, as_is, ["a,b"], "a comma"),
    (Style.COMMA, as_is, {"a": "b,c"}, "a comma"),
    (Style.PAIRS, as_is, {"a": "b,c"}, "a comma"),
    (Style.PAIRS, as_is, {"a=b": "c"}, "an equals sign"),
    (Style.LABEL_EXPLODED, as_uri_text, ["a.b"], "a dot"),
]


@pytest.mark.parametrize(("style", "encode", "value", "separator"), AMBIGUOUS_TEXTS)
def test_items_that_could_not_be_told_apart_are_no_text(
    style: Style, encode: Encode, value: JSON, separator: str
) -> None:
    with pytest.raises(AmbiguousText, match=f"^has {separator} inside an item"):
        expanded("x", value, style, encode)


def test_an_encoded_separator_is_part_of_its_item() -> None:
    assert [pair.text for pair in pairs_of("x", ["a,b", "c"], Style.COMMA, as_uri_text)] == ["a%2Cb,c"]
    assert expanded("x", ["a,b", "c"], Style.COMMA, as_uri_text) == "a%2Cb,c"
    assert expanded("x", ["a;b", "c"], Style.MATRIX_EXPLODED, as_uri_text) == ";x=a%3Bb;x=c"
    assert expanded("x", "a,b", Style.COMMA, as_is) == "a,b"


def test_a_pair_knows_the_way_to_its_value() -> None:
    deep: JSON = {"a": [{"b": 1}], "c": 2}
    assert [pair.members for pair in pairs_of("x", deep, Style.DEEP, as_is)] == [("a", "0", "b"), ("c",)]
    assert [pair.members for pair in pairs_of("x", {"a": 1}, Style.SPREAD, as_is)] == [("a",)]
    assert [pair.members for pair in pairs_of("x", [1], Style.SPREAD, as_is)] == [()]


def test_reserved_characters_stay_where_they_end_nothing() -> None:
    assert as_reserved_text("a:/?@!$'()*,=b") == "a:/?@!$'()*,=b"
    assert as_reserved_text("#&+;[]% ") == "%23%26%2B%3B%5B%5D%25%20"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_every_encoding_is_read_back(text: str) -> None:
    assert unquote(as_uri_text(text), errors="strict") == text
    assert unquote_plus(as_form_text(text), errors="strict") == text
    for encode in (as_reserved_text, as_form_text, as_uri_text):
        query = f"x={encode(text)}&y=1"
        assert parse_qsl(query, keep_blank_values=True, strict_parsing=True) == [("x", text), ("y", "1")]
        assert query.isascii()
        assert query.isprintable()


def _read_back(pairs: list[tuple[str, str]]) -> Any:
    """Read `a[b][0]=c` as PHP does, with every list as an object of its indices."""
    found: dict[str, Any] = {}
    for name, text in pairs:
        first, *rest = name.replace("]", "").split("[")
        into = found
        for here, after in zip([first, *rest], rest, strict=False):
            into = into.setdefault(here, {})
            assert after is not None
        into[[first, *rest][-1]] = text
    return found


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return {str(index): _as_text(item) for index, item in enumerate(value)}
    return {key: _as_text(item) for key, item in value.items()} if isinstance(value, dict) else value


NAMES = st.text("abc", min_size=1, max_size=3)
TREES = st.recursive(
    st.text(max_size=5),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, TREES, min_size=1, max_size=3))
def test_a_deep_object_is_read_back_at_any_depth(value: dict[str, Any]) -> None:
    pairs = [(pair.name, pair.text) for pair in pairs_of("x", value, Style.DEEP, as_is)]
    assert _read_back(pairs) == {"x": _as_text(value)}
