"""Large texts and long lists are searched in other ways than small ones, and with the same result."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.model import JSON
from portbook.redaction import Redactor
from portbook.redaction.prefilter import LARGE
from portbook.redaction.replacements_and_pointers import MARK

KNOWN = "hunter2-hunter2"
REDACTOR = Redactor(keys=["ssn"], pointers=["/rows/*/note"], secrets=[KNOWN])

# One of each kind that is searched for, and some that only look alike.
PARTS = [
    "ghp_" + "a1B2" * 9,
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "xoxb-123456789012",
    "Bearer abcdef123456",
    "Basic " + base64.b64encode(b"ada:pw").decode(),
    "https://ada:hidden@example.org/",
    "4111 1111 1111 1111",
    "password=hidden1",
    '"api_key": "hidden"',
    "Authorization: Digest abc=1",
    "a?sig=abc123",
    KNOWN,
    base64.b64encode(KNOWN.encode()).decode(),
    "hunter2%2dhunter2",
    "the password policy: tokens",
    "basic training; a bearer of news",
    "1234567890123",
    "0.30000000000000004",
    "https://example.org/a@b",
]

# Nothing in it is a secret, or a part of one.
PADDING = "a line of text, and one more. " * (LARGE // 25)


@pytest.mark.parametrize("part", PARTS)
def test_a_large_text_loses_what_a_small_one_loses(part: str) -> None:
    small = REDACTOR.redact_text(f".\n{part}\n.")
    # A text whose secret is escaped is redacted as a whole, whatever its size.
    expected = small if small == MARK else f"{PADDING}{small}{PADDING}"
    assert REDACTOR.redact_text(f"{PADDING}.\n{part}\n.{PADDING}") == expected


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(PARTS),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "password", "ssn", "note", KNOWN]), below, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(values, min_size=16, max_size=40))
def test_each_row_of_a_long_list_is_redacted_as_it_is_alone(rows: list[JSON]) -> None:
    alone: list[Any] = [REDACTOR.redact({"row": [row]})[0] for row in rows]
    expected = [each["row"][0] for each in alone]
    assert REDACTOR.redact({"row": rows})[0] == {"row": expected}


def test_a_pointer_into_a_long_list_finds_every_row() -> None:
    found: Any = REDACTOR.redact({"rows": [{"note": "n", "id": number} for number in range(40)]})[0]
    assert found == {"rows": [{"note": "[redacted]", "id": number} for number in range(40)]}


def test_rows_without_secrets_stay_the_same_objects() -> None:
    rows: JSON = [{"id": number, "password": "x"} if number == 7 else {"id": number} for number in range(40)]
    found: Any = REDACTOR.redact(rows)[0]
    assert found[7] == {"id": 7, "password": "[redacted]"}
    assert all(found[at] is rows[at] for at in range(40) if at != 7)
