"""Multipart bodies: the bytes of every kind of part, and boundaries that no content can hold."""

from __future__ import annotations

import base64
import hashlib
from email import message_from_bytes
from email.policy import HTTP
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.apis import form_and_file_bodies
from portbook.apis.form_and_file_bodies import BodyNames, MultipartBody
from portbook.errors import Refused
from portbook.tools.http_operation import BodyPart, Style


def written(fields: dict[str, Any], *parts: BodyPart, files: dict[str, bytes] | None = None) -> str:
    """Return the body with its boundary as `B`."""
    body, content_type = MultipartBody(BodyNames(parts)).write(fields, (), files or {})
    boundary = content_type.removeprefix("multipart/form-data; boundary=")
    return body.decode("latin-1").replace(boundary, "B")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


CASES: list[tuple[str, Any, BodyPart, list[str]]] = [
    ("text", "a", BodyPart("x"), ['name="x"\r\n\r\na']),
    ("a number", 1.5, BodyPart("x"), ['name="x"\r\n\r\n1.5']),
    ("a list", ["a", 1], BodyPart("x"), ['name="x"\r\n\r\na', 'name="x"\r\n\r\n1']),
    ("an object", {"a": 1}, BodyPart("x"), ['name="x"\r\nContent-Type: application/json\r\n\r\n{"a":1}']),
    (
        "a type",
        "<a/>",
        BodyPart("x", content_type="text/xml"),
        ['name="x"\r\nContent-Type: text/xml\r\n\r\n<a/>'],
    ),
    (
        "JSON",
        ["a"],
        BodyPart("x", Style.JSON, "application/json"),
        ['name="x"\r\nContent-Type: application/json\r\n\r\n["a"]'],
    ),
    ("deep", {"a": [1]}, BodyPart("x", Style.DEEP), ['name="x[a][0]"\r\n\r\n1']),
    (
        "a file",
        encoded(b"\x00\r\n"),
        BodyPart("x", is_binary=True),
        ['name="x"; filename="x"\r\nContent-Type: application/octet-stream\r\n\r\n\x00\r\n'],
    ),
    (
        "files",
        [{"base64": encoded(b"1"), "filename": 'a".png'}, {"base64": "", "content_type": "text/csv"}],
        BodyPart("x", content_type="image/png", is_binary=True),
        [
            'name="x"; filename="a%22.png"\r\nContent-Type: image/png\r\n\r\n1',
            'name="x"; filename="x"\r\nContent-Type: text/csv\r\n\r\n',
        ],
    ),
    (
        "a path",
        {"path": "in/a.txt"},
        BodyPart("x", is_binary=True),
        ['name="x"; filename="a.txt"\r\nContent-Type: application/octet-stream\r\n\r\ndata'],
    ),
]


@pytest.mark.parametrize(("what", "value", "part", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_field_is_written_as_its_parts(what: str, value: Any, part: BodyPart, expected: list[str]) -> None:
    lines = "".join(f"--B\r\nContent-Disposition: form-data; {each}\r\n" for each in expected)
    assert written({"x": value}, part, files={"in/a.txt": b"data"}) == f"{lines}--B--\r\n"


def test_a_name_cannot_end_its_line() -> None:
    assert 'name="a%0D%0AX: 1"' in written({"a\r\nX: 1": "v"})
    assert 'name="a%22%0D%0AX: 1"' in written({'a"\r\nX: 1': "v"}, BodyPart('a"\r\nX: 1'))


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"ten\\ant": "v"}, "/ten\\ant"),
        ({'ten"ant': "v"}, '/ten"ant'),
        ({"x": {"a\\": "v"}}, "/x/a\\"),
        ({"f": {"base64": "", "filename": "a\\"}}, "/f/filename"),
        ({"f": [{"path": "in/a\\"}]}, "/f/0/path"),
    ],
)
def test_a_name_that_servers_read_differently_is_not_sent(fields: dict[str, Any], pointer: str) -> None:
    body = MultipartBody(BodyNames((BodyPart("x", Style.DEEP), BodyPart("f", is_binary=True))))
    with pytest.raises(Refused) as caught:
        body.write(fields, (), {})
    assert caught.value.findings[0].pointer == pointer


def test_null_is_left_out_and_no_field_is_no_body() -> None:
    assert MultipartBody(BodyNames(())).write({"a": None, "b": [None]}, (), {}) == (b"", "")
    files = MultipartBody(BodyNames((BodyPart("f", is_binary=True),)))
    assert files.write({"f": [None]}, (), {}) == (b"", "")


def test_a_file_that_is_no_base64_is_told_by_its_place() -> None:
    with pytest.raises(Refused) as caught:
        MultipartBody(BodyNames((BodyPart("x", is_binary=True),))).write({"x": ["AA==", "?"]}, ("body",), {})
    assert caught.value.findings[0].pointer == "/body/x/1"


def test_equal_bodies_are_equal_bytes() -> None:
    body = MultipartBody(BodyNames(()))
    assert body.write({"a": "b"}, (), {}) == body.write({"a": "b"}, (), {})


def test_a_boundary_is_never_in_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody finds a text that has its own digest, so the digest is replaced by a weak one."""

    class Weak:
        def __init__(self) -> None:
            self.fed = 0

        def update(self, data: bytes) -> None:
            self.fed += 1

        def hexdigest(self) -> str:
            return f"{self.fed}" * 32

    taken = "portbook-" + "3" * 32  # after head, data and line break
    assert hashlib.sha256 is form_and_file_bodies.sha256
    monkeypatch.setattr(form_and_file_bodies, "sha256", Weak)
    body, content_type = MultipartBody(BodyNames(())).write({"a": taken}, (), {})
    assert content_type.endswith("portbook-" + "4" * 32)
    assert body.count(b"4" * 32) == 2


@pytest.mark.parametrize("shift", [-20, 0, 20])
def test_a_boundary_is_found_wherever_it_is(monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    boundary = b"portbook-" + b"0" * 32
    piece = form_and_file_bodies._SEARCHED_PIECE  # type: ignore[reportPrivateUsage]
    for place in (0, piece + shift, 2 * piece + shift):
        assert form_and_file_bodies._is_in(bytes(place) + boundary, boundary)  # type: ignore[reportPrivateUsage]
    assert not form_and_file_bodies._is_in(bytes(piece) + boundary[1:], boundary)  # type: ignore[reportPrivateUsage]


@given(st.dictionaries(st.text("abc", min_size=1), st.text() | st.binary(), max_size=4))
def test_a_parser_reads_back_what_was_written(fields: dict[str, str | bytes]) -> None:
    parts = tuple(BodyPart(name, is_binary=isinstance(value, bytes)) for name, value in fields.items())
    arguments: dict[str, Any] = {
        name: encoded(value) if isinstance(value, bytes) else value for name, value in fields.items()
    }
    body, content_type = MultipartBody(BodyNames(parts)).write(arguments, (), {})
    head = f"Content-Type: {content_type or 'multipart/form-data; boundary=x'}\r\n\r\n".encode()
    message = message_from_bytes(head + body, policy=HTTP.clone(raise_on_defect=False))
    found = {
        str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)
        for part in (message.iter_parts() if body else ())
    }
    assert found == {
        name: value if isinstance(value, bytes) else value.encode() for name, value in fields.items()
    }
