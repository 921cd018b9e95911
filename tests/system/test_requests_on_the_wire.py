"""The requests of imported operations, byte for byte, as a real server gets them from a running Portbook."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from support.decoding_api import DecodedFile
from support.served_document import ServedDocument, served_document

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
BINARY = {"type": "string", "format": "binary"}
DEEP = {"style": "deepObject", "explode": True}


def operation(name: str, *parameters: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"operationId": name, "parameters": list(parameters), "responses": {}, **members}


def parameter(name: str, place: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": {}, "required": place == "path", **members}


def body(media: str, schema: Any, **members: Any) -> dict[str, Any]:
    return {"content": {media: {"schema": schema, **members}}}


def an_object(*names: str, **schemas: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {**{name: {} for name in names}, **schemas}}


PATHS: dict[str, Any] = {
    "/label/{x}": {"get": operation("label", parameter("x", "path", style="label", explode=True))},
    "/matrix/{x}/end": {"get": operation("matrix", parameter("x", "path", style="matrix"))},
    "/query": {
        "get": operation(
            "query",
            parameter("form", "query"),
            parameter("commas", "query", explode=False),
            parameter("spaces", "query", style="spaceDelimited", explode=False),
            parameter("pipes", "query", style="pipeDelimited", explode=False),
            parameter("deep", "query", **DEEP),
            parameter("json", "query", content={"application/json": {}}),
            parameter("open", "query", allowReserved=True),
        )
    },
    "/head": {
        "get": operation(
            "head",
            parameter("X-List", "header"),
            parameter("X-Object", "header", explode=True),
            parameter("theme", "cookie"),
            parameter("lang", "cookie"),
        )
    },
    "/json": {"post": operation("json", requestBody=body("application/json", an_object("a")))},
    "/vendor": {"put": operation("vendor", requestBody=body("application/vnd.x+json", {"type": "array"}))},
    "/form": {
        "post": operation(
            "form",
            requestBody=body(
                FORM, an_object("To", "Tags", "card", "items"), encoding={"card": DEEP, "items": DEEP}
            ),
        )
    },
    "/upload": {
        "post": operation(
            "upload",
            requestBody=body(
                MULTIPART,
                an_object("note", "meta", file=BINARY, pages={"type": "array", "items": BINARY}),
                encoding={"file": {"contentType": "image/png"}},
            ),
        )
    },
    "/albums": {
        "post": operation(
            "albums",
            requestBody=body(
                MULTIPART,
                {
                    "allOf": [
                        an_object("note"),
                        an_object(
                            cover={"allOf": [BINARY], "nullable": True},
                            pages={"$ref": "#/components/schemas/Pages"},
                        ),
                    ]
                },
            ),
        )
    },
    "/text": {"post": operation("text", requestBody=body("text/plain", {"type": "string"}))},
    "/xml": {"post": operation("xml", requestBody=body("application/xml", an_object("a")))},
    "/binary": {"put": operation("binary", requestBody=body("application/octet-stream", BINARY))},
    "/typed/it/text/csv": {"get": operation("csv", responses={"200": {"content": {"text/csv": {}}}})},
}

COMPONENTS: dict[str, Any] = {"schemas": {"Pages": {"type": "array", "items": BINARY}}}

SETTINGS = """
[docs]
enabled = false

[http.api]
base_url = "{url}"
openapi = "api.json"
files = "files"
"""


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedDocument]:
    folder = tmp_path_factory.mktemp("wire")
    (folder / "files").mkdir()
    (folder / "files" / "a.bin").write_bytes(b"\x00in the folder")
    (folder / "files" / "large.bin").write_bytes(bytes(range(256)) * 8192)
    (folder / "files" / "link").symlink_to("/etc/hostname")
    document = {"openapi": "3.0.3", "paths": PATHS, "components": COMPONENTS}
    with served_document(folder, document, SETTINGS) as served:
        yield served


TARGETS: list[tuple[str, dict[str, Any], str]] = [
    ("label", {"x": {"a": "1/2", "b": "é"}}, "/label/.a=1%2F2.b=%C3%A9"),
    ("matrix", {"x": ["a;b", "c"]}, "/matrix/;x=a%3Bb,c/end"),
    ("query", {"form": ["a&b", "c"]}, "/query?form=a%26b&form=c"),
    ("query", {"form": {"left": 1, "right": "2"}}, "/query?left=1&right=2"),
    ("query", {"form": ""}, "/query?form="),
    ("query", {"form": [], "commas": None, "deep": {}}, "/query"),
    ("query", {"commas": ["a,b", "c"]}, "/query?commas=a%2Cb,c"),
    ("query", {"spaces": ["a", "b"], "pipes": ["c", "d"]}, "/query?spaces=a%20b&pipes=c%7Cd"),
    ("query", {"deep": {"a": {"b": [1]}}}, "/query?deep%5Ba%5D%5Bb%5D%5B0%5D=1"),
    ("query", {"json": {"a": [1, "2"]}}, "/query?json=%7B%22a%22%3A%5B1%2C%222%22%5D%7D"),
    ("query", {"open": "a/b?c&d#e+f"}, "/query?open=a/b?c%26d%23e%2Bf"),
]


@pytest.mark.covers("002.execution.openapi-styles")
@pytest.mark.parametrize(("tool", "arguments", "target"), TARGETS)
def test_a_parameter_is_on_the_wire_in_its_style(
    wire: ServedDocument, tool: str, arguments: dict[str, Any], target: str
) -> None:
    assert wire.call(tool, arguments)["status"] == "success"
    assert wire.api.last.target == target
    assert "content-type" not in wire.api.last.headers


@pytest.mark.parametrize("tool", ["label", "matrix"])
@pytest.mark.parametrize("value", [[], [None], {"a": None}])
def test_a_path_without_its_argument_is_not_on_the_wire(wire: ServedDocument, tool: str, value: Any) -> None:
    before = len(wire.api.asked)
    answer = wire.call(tool, {"x": value})
    assert answer["error"]["details"]["violations"][0]["pointer"] == "/x"
    assert len(wire.api.asked) == before


def test_a_header_without_items_is_left_out(wire: ServedDocument) -> None:
    wire.call("head", {"X-List": [None], "X-Object": {}})
    assert not {"x-list", "x-object"} & wire.api.last.headers.keys()


def test_headers_and_cookies_are_on_the_wire(wire: ServedDocument) -> None:
    arguments = {"X-List": [1, "b"], "X-Object": {"a": 1, "b": "c"}, "theme": "dark; x", "lang": "é"}
    assert wire.call("head", arguments)["status"] == "success"
    headers = wire.api.last.headers
    assert (headers["x-list"], headers["x-object"]) == ("1,b", "a=1,b=c")
    assert headers["cookie"] == "theme=dark%3B%20x; lang=%C3%A9"


BODIES: list[tuple[str, dict[str, Any], bytes, str]] = [
    ("json", {"a": "é"}, '{"a":"é"}'.encode(), "application/json"),
    ("vendor", {"body": [1]}, b"[1]", "application/vnd.x+json"),
    ("form", {"To": "+1 2", "Tags": ["a", "b"]}, b"To=%2B1+2&Tags=a&Tags=b", FORM),
    ("form", {"card": {"owner": {"name": "A"}}}, b"card%5Bowner%5D%5Bname%5D=A", FORM),
    ("form", {"items": [{"price": "p", "n": 2}]}, b"items%5B0%5D%5Bprice%5D=p&items%5B0%5D%5Bn%5D=2", FORM),
    ("text", {"body": "é\n"}, "é\n".encode(), "text/plain; charset=utf-8"),
    ("xml", {"body": "<a>é</a>"}, "<a>é</a>".encode(), "application/xml"),
    ("binary", {"body": "AP8="}, b"\x00\xff", "application/octet-stream"),
    ("binary", {"body": {"path": "a.bin"}}, b"\x00in the folder", "application/octet-stream"),
    ("form", {}, b"", ""),
]


@pytest.mark.covers("002.execution.openapi-bodies")
@pytest.mark.parametrize(("tool", "arguments", "sent", "content_type"), BODIES)
def test_a_body_is_on_the_wire_in_its_type(
    wire: ServedDocument, tool: str, arguments: dict[str, Any], sent: bytes, content_type: str
) -> None:
    assert wire.call(tool, arguments)["status"] == "success"
    asked = wire.api.last
    assert (asked.body, asked.headers.get("content-type", "")) == (sent, content_type)
    assert asked.headers["content-length"] == str(len(sent))


def test_a_multipart_body_is_on_the_wire(wire: ServedDocument) -> None:
    arguments = {
        "note": "two\r\nlines",
        "meta": {"a": [1]},
        "file": {"base64": base64.b64encode(b"\x89PNG\r\n--").decode(), "filename": 'my "é".png'},
        "pages": ["AA==", {"path": "a.bin", "content_type": "text/csv"}],
    }
    assert wire.call("upload", arguments)["status"] == "success"
    asked = wire.api.last
    boundary = asked.headers["content-type"].removeprefix("multipart/form-data; boundary=").encode()
    head = b'--%b\r\nContent-Disposition: form-data; name="' % boundary
    assert asked.body == (
        b'%bnote"\r\n\r\ntwo\r\nlines\r\n'
        b'%bmeta"\r\nContent-Type: application/json\r\n\r\n{"a":[1]}\r\n'
        b'%bfile"; filename="my %%22\xc3\xa9%%22.png"\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n--\r\n'
        b'%bpages"; filename="pages"\r\nContent-Type: application/octet-stream\r\n\r\n\x00\r\n'
        b'%bpages"; filename="a.bin"\r\nContent-Type: text/csv\r\n\r\n\x00in the folder\r\n'
        b"--%b--\r\n" % (head, head, head, head, head, boundary)
    )
    assert asked.form == [("note", "two\r\nlines"), ("meta", '{"a":[1]}')]
    assert [file.data for file in asked.files] == [b"\x89PNG\r\n--", b"\x00", b"\x00in the folder"]
    assert asked.files[2] == DecodedFile("pages", "a.bin", "text/csv", b"\x00in the folder")
    assert wire.call("upload", arguments)["status"] == "success"
    assert wire.api.last.body == asked.body


def test_files_behind_references_and_combinations_are_sent_as_files(wire: ServedDocument) -> None:
    pages = [{"base64": "AA==", "filename": "1.png"}, {"path": "a.bin"}]
    assert wire.call("albums", {"note": "n", "cover": "AQ==", "pages": pages})["status"] == "success"
    assert [(file.name, file.filename, file.data) for file in wire.api.last.files] == [
        ("cover", "cover", b"\x01"),
        ("pages", "1.png", b"\x00"),
        ("pages", "a.bin", b"\x00in the folder"),
    ]
    assert wire.call("albums", {"note": "n", "cover": None})["status"] == "success"
    assert (wire.api.last.form, wire.api.last.files) == ([("note", "n")], [])


def test_a_large_file_is_sent_whole(wire: ServedDocument) -> None:
    data = bytes(range(256)) * 8192  # 2 MiB: it is composed in a thread
    for file in ({"path": "large.bin"}, {"base64": base64.b64encode(data[:600_000]).decode()}):
        assert wire.call("upload", {"file": file, "note": "n"})["status"] == "success"
        (sent,) = wire.api.last.files
        assert sent.data == (data if "path" in file else data[:600_000])
        assert wire.api.last.form == [("note", "n")]


@pytest.mark.parametrize("path", ["link", "../api.json", "/etc/hostname", "gone"])
def test_only_files_of_the_folder_are_sent(wire: ServedDocument, path: str) -> None:
    before = len(wire.api.asked)
    answer = wire.call("binary", {"body": {"path": path}})
    assert answer["error"]["code"] == "INVALID_INPUT"
    assert answer["error"]["details"]["violations"][0]["pointer"] == "/body/path"
    assert len(wire.api.asked) == before


def test_what_is_wanted_of_a_response_is_said(wire: ServedDocument) -> None:
    wire.call("csv", {})
    assert wire.api.last.headers["accept"] == "text/csv"
    wire.call("form", {"To": "a"})
    assert wire.api.last.headers["accept"] == "application/json, */*;q=0.5"
