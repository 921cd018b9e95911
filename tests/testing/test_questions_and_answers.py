"""Answers to what a tool asks."""

from __future__ import annotations

from typing import Any

import pytest

from portbook import Form, OpenPage, Roots, Sample
from portbook.testing.questions_and_answers import given_by, inquiry_of, response_to

FORM = inquiry_of(
    Form("Which size?", {"properties": {"size": {"enum": ["S", "L"]}}, "required": ["size"]}).request()
)
PAGE = inquiry_of(OpenPage("Sign in.", "https://shop.example/").request())
SAMPLE = inquiry_of(Sample("Name a colour.").request())
ROOTS = inquiry_of(Roots().request())
MESSAGE = {"role": "assistant", "content": {"type": "text", "text": "blue"}, "model": "m"}


@pytest.mark.parametrize(
    ("inquiry", "given", "response"),
    [
        (FORM, {"size": "L"}, {"action": "accept", "content": {"size": "L"}}),
        (FORM, False, {"action": "decline"}),
        (FORM, None, {"action": "cancel"}),
        (PAGE, True, {"action": "accept"}),
        (PAGE, False, {"action": "decline"}),
        (PAGE, None, {"action": "cancel"}),
        (SAMPLE, "blue", {**MESSAGE, "model": "portbook.testing"}),
        (SAMPLE, MESSAGE, MESSAGE),
        (ROOTS, ["file:///a", {"uri": "file:///b", "name": "b"}],
         {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "b"}]}),
    ],
)  # fmt: skip
def test_an_answer_is_what_mcp_wants_it_to_be(inquiry: Any, given: Any, response: Any) -> None:
    assert response_to(inquiry, given) == response


@pytest.mark.parametrize(
    ("inquiry", "given", "words"),
    [
        (FORM, {"size": "XL"}, r"this does not answer 'Which size\?': /size: "),
        (FORM, True, r"this does not answer 'Which size\?': \(root\): missing property"),
        (FORM, "L", "a form is answered with a dict"),
        (SAMPLE, 5, "a sample is answered with a text"),
        (ROOTS, "file:///a", "roots are answered with a list of URIs"),
    ],
)
def test_what_is_no_answer_is_the_tests_mistake(inquiry: Any, given: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        response_to(inquiry, given)


def test_a_mapping_answers_forms_alone() -> None:
    assert given_by({"size": "L", "colour": "red"}, FORM) == {"size": "L"}
    with pytest.raises(LookupError, match="asks for a sample; give a function"):
        given_by({"size": "L"}, SAMPLE)
