"""Path arguments in every style: written by the specification, and never outside of their segment."""

from __future__ import annotations

import pytest

from portbook.apis.path_and_query_values import segment_of
from portbook.errors import Refused
from portbook.model import JSON
from portbook.tools.http_operation import Parameter, ParameterPlace, Style


def segment(value: JSON, style: Style) -> str:
    return segment_of(Parameter("id", ParameterPlace.PATH, "i d", style), value)


@pytest.mark.parametrize(
    ("style", "value", "written"),
    [
        (Style.COMMA, ["a/b", 1], "a%2Fb,1"),
        (Style.COMMA, {"a": "x/y"}, "a,x%2Fy"),
        (Style.PAIRS, {"a=": "x"}, "a%3D=x"),
        (Style.LABEL, "a.b", ".a.b"),
        (Style.MATRIX, "", ";i%20d"),
        (Style.MATRIX, "a;b", ";i%20d=a%3Bb"),
        (Style.MATRIX_EXPLODED, ["a", ""], ";i%20d=a;i%20d="),
        (Style.MATRIX, ["a", None], ";i%20d=a"),
        (Style.COMMA, {"a": None, "b": 1}, "b,1"),
        (Style.JSON, {"a": 1}, "%7B%22a%22%3A1%7D"),
        (Style.JSON, [None], "%5Bnull%5D"),
    ],
)
def test_a_segment_is_written_in_its_style(style: Style, value: JSON, written: str) -> None:
    assert segment(value, style) == written


@pytest.mark.parametrize("style", [style for style in Style if style is not Style.JSON])
@pytest.mark.parametrize(
    "value",
    [None, [], {}, [None], {"a": None}, "..", ["..", "a"], {"a": ".."}, {"..": "a"}, "a\nb", "%2e%2e"],
)
def test_a_value_that_could_leave_its_segment_is_refused(style: Style, value: JSON) -> None:
    with pytest.raises(Refused) as caught:
        segment(value, style)
    assert [finding.pointer for finding in caught.value.findings] == ["/id"]


@pytest.mark.parametrize("style", [Style.COMMA, Style.LABEL, Style.LABEL_EXPLODED, Style.REPEAT])
def test_an_empty_text_is_refused_where_nothing_would_be_left(style: Style) -> None:
    with pytest.raises(Refused):
        segment("", style)
