"""What is taken out of a value, what is put in its place, and that nothing else changes."""

from __future__ import annotations

import base64
import copy
import enum
import hashlib
import hmac
import json
import sys
import urllib.parse
import uuid
from types import FrameType
from typing import Any, NoReturn

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from portbook.canonical import json_bytes
from portbook.model import JSON
from portbook.redaction import BadRedaction, Mode, Redactor
from portbook.redaction.detectors import is_card_number
from support.counts import count
from support.portbook_process import TESTS

CANARIES: list[dict[str, str]] = json.loads((TESTS / "corpora" / "secret_canaries.json").read_text("utf-8"))
# Three of them are one token: in pieces, in base64, escaped. By themselves they look like nothing.
TOKEN = "CANARY-tok-91c2"
SECRET = "hunter2-\"ü\\'/+x"


def redacted(value: JSON, **options: Any) -> JSON:
    return Redactor(**options).redact(value)[0]


@pytest.mark.covers("002.redaction.canaries")
@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary["kind"])
@pytest.mark.parametrize("mode", ["replace", "remove", "hash"])
def test_no_canary_survives(canary: dict[str, str], mode: Mode) -> None:
    redactor = Redactor(secrets=[TOKEN], mode=mode)
    value: JSON = {"text": canary["value"], "list": [f"before {canary['value']} after"], canary["value"]: 1}
    assert redactor.might_touch(json_bytes(value))
    found, is_redacted = redactor.redact(value)
    assert is_redacted
    body = json_bytes(found)
    assert b"CANARY" not in body.replace(b"\\u0043", b"C")
    assert json_bytes(canary["value"])[1:-1] not in body
    assert b"text" in body
    for piece in ("AKIAQ3", "wJalr", "xoxb-", "eyJh", "Q0FO", "4111", "tok-91c2", "CANARY"):
        assert piece not in redactor.redact_text(canary["value"])


# -- by name

VALUES: JSON = {
    "string": "x",
    "empty": "",
    "whole": 7,
    "fraction": 7.5,
    "yes": True,
    "nothing": None,
    "array": [1],
    "object": {"a": 1},
}


def test_what_stands_in_keeps_the_type() -> None:
    assert redacted(VALUES, keys=list(VALUES)) == {
        "string": "[redacted]",
        "empty": "[redacted]",
        "whole": 0,
        "fraction": 0,
        "yes": False,
        "nothing": None,
        "array": [],
        "object": {},
    }


def test_a_member_can_be_left_out_but_an_item_keeps_its_place() -> None:
    options: dict[str, Any] = {"mode": "remove", "pointers": ["/list/1"], "patterns": ["^secret"]}
    value: JSON = {"password": 1, "a": "secret one", "list": [1, {"b": 2}, "secret two", "c"]}
    assert redacted(value, **options) == {"list": [1, {}, "[redacted]", "c"]}
    assert redacted("secret", **options) == "[redacted]"


def test_hashes_are_equal_for_equal_secrets_and_a_key_alone() -> None:
    value: JSON = {"password": "one", "nested": {"secret": "one", "token": "two"}, "pwd": 5}
    found: Any = redacted(value, mode="hash", hash_key=b"k")
    other: Any = redacted(value, mode="hash", hash_key=b"other")
    assert found["password"] == found["nested"]["secret"] != found["nested"]["token"]
    assert found["password"] != other["password"]
    assert found["password"] == f"[sha256:{hmac.new(b'k', b'one', hashlib.sha256).hexdigest()[:16]}]"
    assert found["pwd"] == 0
    assert redacted(found, mode="hash", hash_key=b"k") is found


@pytest.mark.parametrize("answer", [True, False, None])
def test_a_yes_or_no_under_a_built_in_name_is_no_secret(answer: JSON) -> None:
    value: JSON = {"has_password": answer}
    assert redacted(value) is value
    assert redacted({"secret": True}, keys=["secret"]) == {"secret": False}


# -- by pointer


@pytest.mark.covers("002.redaction.pointers")
@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("/a/b", {"a": {"b": "[redacted]", "c": [1, {"b": 2}]}, "x/y": "z", "~": 1}),
        ("/a/c/0", {"a": {"b": "x", "c": [0, {"b": 2}]}, "x/y": "z", "~": 1}),
        ("/a/c/*/b", {"a": {"b": "x", "c": [1, {"b": 0}]}, "x/y": "z", "~": 1}),
        ("/*/b", {"a": {"b": "[redacted]", "c": [1, {"b": 2}]}, "x/y": "z", "~": 1}),
        ("/a/*", {"a": {"b": "[redacted]", "c": []}, "x/y": "z", "~": 1}),
        ("/x~1y", {"a": {"b": "x", "c": [1, {"b": 2}]}, "x/y": "[redacted]", "~": 1}),
        ("/~0", {"a": {"b": "x", "c": [1, {"b": 2}]}, "x/y": "z", "~": 0}),
        ("", {}),
    ],
)
def test_a_pointer_names_one_place_and_a_star_any(pointer: str, expected: JSON) -> None:
    value: JSON = {"a": {"b": "x", "c": [1, {"b": 2}]}, "x/y": "z", "~": 1}
    redactor = Redactor(pointers=[pointer])
    assert redactor.might_touch(json_bytes(value))
    assert redactor.redact(value) == (expected, True)


@pytest.mark.parametrize("pointer", ["/b", "/a/d", "/a/b/c", "/A", "/a/c/01", "/*/*/*/*/*"])
def test_a_pointer_to_nothing_changes_nothing(pointer: str) -> None:
    value: JSON = {"a": {"b": "x", "c": [1, {"b": 2}]}}
    assert redacted(value, pointers=[pointer]) is value


def test_a_star_and_a_name_hold_together() -> None:
    value: JSON = {"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 4}}
    assert redacted(value, pointers=["/*/b", "/a/c"]) == {"a": {"b": 0, "c": 0}, "d": {"b": 0, "c": 4}}


@pytest.mark.parametrize("pointer", ["a", "a/b", "/a~", "/~2", "#/a"])
def test_a_pointer_that_is_none_is_refused(pointer: str) -> None:
    with pytest.raises(BadRedaction, match="write a JSON Pointer"):
        Redactor(pointers=[pointer])


# -- by pattern


@pytest.mark.covers("002.redaction.patterns")
def test_a_string_that_a_pattern_is_found_in_goes_as_a_whole() -> None:
    redactor = Redactor(patterns=[r"\bP-\d{3}\b", "^internal:"])
    value: JSON = {"a": "the case P-123 was closed", "b": "P-12", "c": ["internal: x", "not internal: x"]}
    assert redactor.might_touch(json_bytes(value))
    expected = {"a": "[redacted]", "b": "P-12", "c": ["[redacted]", "not internal: x"]}
    assert redactor.redact(value) == (expected, True)
    assert redactor.redact_text("P-123") == "[redacted]"


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"(a)\1", r"(?<!a)b", "("])
def test_a_pattern_that_cannot_be_matched_in_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(BadRedaction, match=r"pattern .* (linear time|not a valid regex)"):
        Redactor(patterns=[pattern])


REDOS: list[Any] = json.loads((TESTS / "corpora" / "redos_patterns.json").read_text("utf-8"))


@pytest.mark.parametrize("case", REDOS, ids=lambda case: case["pattern"][:30])
def test_no_pattern_can_be_made_slow(case: Any) -> None:
    text = case["unit"] * (case["count"] * 1000) + case.get("suffix", "")
    try:
        redactor = Redactor(patterns=[case["pattern"]])
    except BadRedaction:
        return
    assert redactor.redact_text(text) in (text, "[redacted]")


# -- JSON inside of text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"password":"x","a":1}', '{"password":"[redacted]","a":1}', id="an object"),
        pytest.param(' [ {"token" : "x"} ] ', '[{"token":"[redacted]"}]', id="with spaces"),
        pytest.param('{"pass\\u0077ord":"x"}', '{"password":"[redacted]"}', id="an escaped name"),
        pytest.param('{"a":"{\\"secret\\":5}"}', '{"a":"{\\"secret\\":0}"}', id="text in text"),
        pytest.param('"Bearer abcdef123456"', '"Bearer [redacted]"', id="a string"),
        pytest.param('{"password":"[redacted]"}', '{"password":"[redacted]"}', id="nothing left"),
        pytest.param('{"password":"x","password":"y"}', '{"password":"[redacted]","password":"[redacted]"}',
                     id="twice the same name"),
        pytest.param('{"password":"x', '{"password":"[redacted]', id="cut off"),
        pytest.param('{"password": ["x", "y"', '{"password": [redacted]', id="cut off in an array"),
    ],
)  # fmt: skip
def test_json_in_a_string_is_looked_into(text: str, expected: str) -> None:
    assert Redactor().redact_text(text) == expected


def test_a_pointer_leads_into_json_in_a_string() -> None:
    assert redacted({"a": '{"b":"x"}'}, pointers=["/a/b"]) == {"a": '{"b":"[redacted]"}'}


def test_a_member_can_be_left_out_of_json_in_a_string() -> None:
    assert redacted({"a": '{"password":"x","b":1}'}, mode="remove") == {"a": '{"b":1}'}


@pytest.mark.parametrize("depth", [100, 240])
def test_depth_is_no_way_out(depth: int) -> None:
    value: JSON = {"password": "x"}
    for _ in range(depth):
        value = [value]
    assert b'"x"' not in json_bytes(redacted(value))


def test_text_inside_of_deep_values_is_bounded() -> None:
    inner: JSON = {"password": "deep-secret"}
    for _ in range(190):
        inner = [inner]
    value: JSON = json_bytes(inner).decode()
    for _ in range(190):
        value = [value]
    found = json_bytes(redacted(value))
    assert b"deep-secret" not in found


# -- what a Python function may return


class Colour(enum.Enum):
    RED = "password=hunter2"
    BLUE = "blue"


def test_what_python_returns_in_place_of_json_is_seen_through() -> None:
    identifier = uuid.UUID(int=5)
    value: Any = {"a": ("password=x", {"token": ("y",)}), "b": Colour.RED, "c": Colour.BLUE, "d": identifier}
    found: Any = redacted(value)
    assert found == {
        "a": ["password=[redacted]", {"token": []}],
        "b": "password=[redacted]",
        "c": Colour.BLUE,
        "d": identifier,
    }
    assert redacted({"token": identifier, "secret": Colour.BLUE}) == {
        "token": "[redacted]",
        "secret": "[redacted]",
    }


# -- names of members


def test_a_secret_in_a_name_is_taken_out_and_no_member_is_lost() -> None:
    value: JSON = {"AKIAQ3EGRZ7XK5L2MNOP": 1, "AKIAQ3EGRZ7XK5L2MNOQ": 2, "[redacted] 2": 3, "b": 4}
    assert redacted(value) == {"[redacted]": 1, "[redacted] 2": 2, "[redacted] 2 3": 3, "b": 4}


def test_more_names_than_are_remembered_are_still_looked_at() -> None:
    redactor = Redactor(secrets=["hunter2"])
    redactor.redact({f"n{number}": 1 for number in range(5000)})
    assert redactor.redact({"my hunter2": 1, "n1": 2}) == ({"my [redacted]": 1, "n1": 2}, True)


def test_a_text_that_was_clean_in_one_place_is_taken_out_of_another() -> None:
    redactor = Redactor(pointers=["/a", "/b/c"])
    assert redactor.redact({"d": ["text", '{"c":1}']})[1] is False
    assert redactor.redact({"a": "text", "b": '{"c":1}'})[0] == {"a": "[redacted]", "b": '{"c":0}'}


# -- how much work it is


def work(redactor: Redactor, value: JSON) -> int:
    """Return how many functions are called: unlike seconds, the same on every machine."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        redactor.redact(value)
    finally:
        sys.setprofile(before)
    return calls


_SIZE = count("costly values")
COSTLY: dict[str, Any] = {
    **{
        unit: unit * (_SIZE // len(unit))
        for unit in (
            "%",
            "a=%",
            "%3d=:",
            "\\x41=",
            "d=",
            "pwd=a ",
            "pwd='a'",
            "pwd=;",
            "pwd: abc ",
            "://a:b@",
        )
    },
    "many %": ["%"] * (_SIZE // 4),
    "many a=%": ["a=%"] * (_SIZE // 6),
    "many empty": [""] * (_SIZE // 3),
    "all different": [f"{number:05d}%" for number in range(_SIZE // 9)],
    "all different names": {f"{number:05d}%": number for number in range(_SIZE // 14)},
    "all different, with @": [f"{number:05d}@example.com" for number in range(_SIZE // 20)],
    "numbers like a card's": list(range(4111_1111_1110_0000, 4111_1111_1110_0000 + _SIZE // 17)),
}


@pytest.mark.soak("costly values")
@pytest.mark.parametrize("name", COSTLY)
def test_no_value_takes_more_than_a_few_calls_for_each_of_its_bytes(name: str) -> None:
    value = COSTLY[name]
    assert work(Redactor(secrets=["hunter2-hunter2", "a" * 30]), value) < 4.5 * len(json_bytes(value))


@pytest.mark.parametrize("text", ["100%", "%", "a=%", "%zz", "1+1", "'a'", "50% + 20%"])
def test_a_text_without_a_real_escape_is_looked_at_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def views(_text: str) -> NoReturn:
        pytest.fail("looked at again")

    monkeypatch.setattr("portbook.redaction.redactor.views", views)
    assert Redactor(secrets=[SECRET]).redact_text(text) == text


def test_a_text_of_little_else_than_secrets_goes_as_a_whole() -> None:
    redactor = Redactor()
    few = "\n".join(f"password={number}" for number in range(200))
    assert redactor.redact_text(few) == "\n".join(["password=[redacted]"] * 200)
    assert redactor.redact_text("password=a\n" * 1000) == "[redacted]"
    far_between = ("password=a " + "word " * 20) * 1000
    assert redactor.redact_text(far_between).count("password=[redacted] word") == 1000


# -- known secrets


def test_secrets_can_be_exchanged() -> None:
    before = Redactor(keys=["ssn"], secrets=["first-secret"], mode="hash", hash_key=b"k", detectors=False)
    after = before.with_secrets(["second-secret"])
    assert before.redact_text("second-secret") == "second-secret"
    assert after.redact_text("first-secret") == "first-secret"
    assert after.redact_text("my second-secret").startswith("my [sha256:")
    assert after.redact_text("Bearer abcdef123456") == "Bearer abcdef123456"
    assert after.redact({"ssn": 5}) == ({"ssn": 0}, True)


def test_a_secret_of_digits_is_found_in_numbers() -> None:
    redactor = Redactor(secrets=["482913"])
    value: JSON = {"a": 482913, "b": 14829130, "c": 48291, "d": 0.482913, "e": True}
    assert redactor.might_touch(json_bytes(value))
    assert redactor.redact(value)[0] == {"a": 0, "b": 0, "c": 48291, "d": 0, "e": True}


def test_detectors_can_be_switched_off_and_names_still_count() -> None:
    redactor = Redactor(detectors=False)
    text = "AKIAQ3EGRZ7XK5L2MNOP password=x"
    assert redactor.redact({"a": text, "card": 4111111111111111, "token": "x"})[0] == {
        "a": text,
        "card": 4111111111111111,
        "token": "[redacted]",
    }


# -- for any value

_names = st.sampled_from(["a", "b", "password", "Token", "note"]) | st.text(max_size=5)
_texts = st.text(max_size=12) | st.sampled_from(
    [
        "password=x y;",
        '{"token": 5}',
        "Bearer abc123def",
        "a\\u0062c",
        "%41%42",
        "[redacted]",
        "x: y",
        '"+"',
        "4" * 16,
    ]
)


def _around(secret: str) -> st.SearchStrategy[str]:
    """Texts that hold a secret in one of the forms in which it may appear."""
    forms = [
        secret,
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps({"a": json.dumps([secret])}),
        urllib.parse.quote(secret),
        urllib.parse.quote(secret, safe="").lower(),
        urllib.parse.quote_plus(secret),
        "".join(f"\\u{ord(character):04x}" for character in secret),
        secret[:4] + f"\\u{ord(secret[4]):04X}" + secret[5:],
        secret[:3] + '"+"' + secret[3:],
        secret[:3] + "' + '" + secret[3:],
        secret.encode().hex(),
        *(
            base64.b64encode(prefix + secret.encode() + b"tail").decode()
            for prefix in (b"", b"a", b"ab", b"abc")
        ),
        *(base64.urlsafe_b64encode(prefix + secret.encode()).decode() for prefix in (b"", b"a", b"ab")),
    ]
    return st.tuples(_texts, st.sampled_from(forms), _texts).map("".join)


def _values(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        scalars | leaves,
        lambda below: st.lists(below, max_size=4) | st.dictionaries(_names | leaves, below, max_size=4),
        max_leaves=12,
    )


_redactors = st.builds(
    Redactor,
    keys=st.sampled_from([(), ("note",), ("ü",)]),
    pointers=st.sampled_from([(), ("/a",), ("/*/b", "/0")]),
    patterns=st.sampled_from([(), ("x$",)]),
    secrets=st.just((SECRET, "short", "123456")),
    mode=st.sampled_from(["replace", "remove", "hash"]),
    detectors=st.booleans(),
    hash_key=st.just(b"key"),
)


def _decoded(text: str) -> str:
    for _ in range(3):
        text = urllib.parse.unquote(text)
        text = text.replace("\\\\", "\\").replace('\\"', '"').replace('"+"', "").replace("' + '", "")
        for character in set(SECRET):
            for digits in (f"{ord(character):04x}", f"{ord(character):04X}"):
                text = text.replace(f"\\u{digits}", character)
    return text


def hidden_secrets(test: Any) -> Any:
    return pytest.mark.soak("hidden secrets")(settings(max_examples=count("hidden secrets"))(test))


@given(_values(_around(SECRET)), _redactors)
@hidden_secrets
def test_no_known_secret_survives_in_any_form(value: JSON, redactor: Redactor) -> None:
    body = json_bytes(redactor.redact(value)[0]).decode()
    core = SECRET.encode()
    assert SECRET not in _decoded(body)
    assert core.hex() not in body
    for prefix in (b"", b"a", b"ab"):
        encoded = base64.b64encode(prefix + core).decode()
        inner = encoded[4 if prefix else 0 : -4]
        assert inner not in body
        assert inner.replace("+", "-").replace("/", "_") not in body


@given(_values(_texts | _around(SECRET)), _redactors)
@example({"password=\\u0041": "password=[redacted]x"}, Redactor())
@hidden_secrets
def test_what_is_redacted_stays_so(value: JSON, redactor: Redactor) -> None:
    once, _ = redactor.redact(value)
    again, is_redacted = redactor.redact(once)
    assert again is once
    assert not is_redacted


@given(_values(_texts | _around(SECRET)), _redactors)
@hidden_secrets
def test_the_cheap_test_never_says_no_where_something_is_taken_out(value: JSON, redactor: Redactor) -> None:
    before = copy.deepcopy(value)
    found, is_redacted = redactor.redact(value)
    assert value == before
    assert json_bytes(value) == json_bytes(before)
    assert is_redacted is (found is not value)
    assert is_redacted is (json_bytes(found) != json_bytes(value))
    if is_redacted:
        assert redactor.might_touch(json_bytes(value))


_plain_texts = st.text(alphabet="abc xyz.,", max_size=20)  # they spell nothing that a detector looks for
_plain_numbers = st.integers().filter(lambda number: not is_card_number(number)) | st.floats(
    allow_nan=False, allow_infinity=False
)
_plain = st.recursive(
    st.none() | st.booleans() | _plain_numbers | _plain_texts,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(_plain_texts, below, max_size=4),
    max_leaves=12,
)


@given(_plain)
def test_a_value_without_secrets_is_returned_as_it_is(value: JSON) -> None:
    assert Redactor(secrets=["hunter2-hunter2"]).redact(value)[0] is value


def test_parts_that_are_not_touched_are_the_same_objects() -> None:
    untouched: JSON = {"list": [1, 2, {"a": "b"}]}
    value: JSON = {"password": "x", "untouched": untouched, "list": [untouched]}
    found: Any = redacted(value)
    assert found["untouched"] is untouched
    assert found["list"] is value["list"]
