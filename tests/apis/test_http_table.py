"""The `[http]` table: tools and gateways as declared, and everything that is refused with its place."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.gateway import Gateway, ManagedIdentity, Secret
from portbook.apis.http_table import HttpTools, read_http
from portbook.errors import Reason
from portbook.tools.catalog import Catalog
from portbook.tools.operation import HttpOperation, Parameter, ParameterPlace
from portbook.tools.spec import Effect, ToolSpec

HERE = Path("/settings")


class Complaint(Exception):
    pass


def complain(path: tuple[str | int, ...], sentence: str) -> Exception:
    return Complaint(f"{'.'.join(map(str, path))} {sentence}")


def read(text: str, environ: dict[str, str] | None = None, folder: Path = HERE) -> HttpTools:
    return read_http(tomllib.loads(text)["http"], environ or {}, folder, complain)


def one(text: str) -> ToolSpec:
    """The tool of a gateway that has a base URL and one tool."""
    found = read(f'[http.orders]\nbase_url = "http://127.0.0.1:9000"\n[http.orders.tools.it]\n{text}')
    assert len(found.specs) == 1
    return found.specs[0]


def operation(spec: ToolSpec) -> HttpOperation:
    assert spec.operation is not None
    return spec.operation


def complaint(text: str, environ: dict[str, str] | None = None, folder: Path = HERE) -> str:
    with pytest.raises(Complaint) as caught:
        read(text, environ, folder)
    return str(caught.value)


@pytest.mark.covers("002.tools.http-declared")
def test_a_declared_tool_is_what_the_file_says() -> None:
    text = """
        [http.orders]
        base_url = "http://127.0.0.1:9000"

        [http.orders.tools.get_order]
        description = "One order by its id."
        method = "GET"
        path = "/orders/{id}"
        effect = "read"
        timeout_ms = 2000
        input = { type = "object", required = ["id"], properties = { id = { type = "string" } } }
        output = { type = "object", required = ["id"] }
    """
    found = read(text)
    assert found.gateways == [Gateway("orders", "http://127.0.0.1:9000")]
    assert found.warnings == []
    assert found.specs == [
        ToolSpec(
            "orders.get_order",
            "One order by its id.",
            {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
            {"type": "object", "required": ["id"]},
            Effect.READ,
            operation=HttpOperation(
                "orders", "http://127.0.0.1:9000", "GET", "/orders/{id}", is_idempotent=True
            ),
            timeout_ms=2000,
        )
    ]
    assert found.specs[0].identifier == "mcp.tool:orders.get_order"
    Catalog(found.specs)


def test_what_is_left_out_has_a_default() -> None:
    spec = one('method = "get"\npath = "/a/{x}/{y}"')
    assert spec.description == "GET /a/{x}/{y}"
    assert spec.output_schema is True
    assert spec.timeout_ms is None
    tool = Catalog([spec]).find("orders.it")
    assert tool is not None
    assert tool.input.is_valid({"x": "1", "y": "2"})
    assert not tool.input.is_valid({"x": "1"})
    assert not tool.input.is_valid({"x": "1", "y": ""})
    assert not tool.input.is_valid({"x": "1", "y": "2", "z": "3"})


@pytest.mark.parametrize(
    ("method", "given", "effect", "is_idempotent"),
    [
        ("GET", "", Effect.READ, True),
        ("HEAD", "", Effect.READ, True),
        ("OPTIONS", "", Effect.READ, True),
        ("POST", "", Effect.WRITE, False),
        ("PUT", "", Effect.WRITE, False),
        ("PATCH", "", Effect.WRITE, False),
        ("DELETE", "", Effect.DESTRUCTIVE, False),
        ("GET", 'effect = "write"', Effect.WRITE, False),
        ("POST", 'effect = "read"', Effect.READ, False),
        ("POST", "idempotent = true", Effect.WRITE, True),
        ("GET", "idempotent = false", Effect.READ, False),
    ],
)
def test_the_verb_says_the_effect_unless_the_file_does(
    method: str, given: str, effect: Effect, is_idempotent: bool
) -> None:
    spec = one(f'method = "{method}"\npath = "/"\n{given}')
    assert (spec.effect, operation(spec).is_idempotent) == (effect, is_idempotent)


@pytest.mark.covers("002.approval.only-what-can-run")
def test_a_tool_says_what_it_cannot_run_with() -> None:
    refuse = one(
        'method = "GET"\npath = "/{id}?tenant=acme"\nheader = { note = "X-Note" }\ninput = {}'
    ).refuse
    assert refuse is not None
    assert refuse({"id": "A", "note": "b", "more": 1}) is None
    for arguments, pointer in (
        ({"id": "../admin"}, "/id"),
        ({"id": "a\nb"}, "/id"),
        ({"id": "A", "note": "b\r\nX-Admin: 1"}, "/note"),
        ({"id": "A", "tenant": "evil"}, "/tenant"),
    ):
        refusal = refuse(dict(arguments))
        assert refusal is not None, arguments
        assert (refusal.reason, refusal.findings[0].pointer) == (Reason.BAD_ARGUMENTS, pointer)


def test_arguments_are_placed_by_name() -> None:
    found = operation(
        one(
            'method = "POST"\npath = "/"\nbody = "order"\nquery = ["dry_run"]\n'
            'header = { tenant = "X-Tenant" }\nretries = 1\nmax_response_bytes = 99\nresponse = "text/csv"'
        )
    )
    assert found.parameters == (
        Parameter("dry_run", ParameterPlace.QUERY, "dry_run"),
        Parameter("tenant", ParameterPlace.HEADER, "X-Tenant"),
    )
    assert (found.body, found.retries, found.max_response_bytes, found.response) == (
        "order",
        1,
        99,
        "text/csv",
    )


def test_a_gateways_deadline_is_for_tools_without_one() -> None:
    found = read(
        """
        [http.a]
        base_url = "https://a.example"
        timeout_ms = 700
        [http.a.tools.x]
        method = "GET"
        path = "/"
        [http.a.tools.y]
        method = "GET"
        path = "/"
        timeout_ms = 50
        """
    )
    assert [(spec.name, spec.timeout_ms) for spec in found.specs] == [("a.x", 700), ("a.y", 50)]


# --- gateways


def gateway(text: str, environ: dict[str, str] | None = None) -> Gateway:
    return read(f"[http.orders]\n{text}", environ).gateways[0]


@pytest.mark.covers("002.execution.base-url-per-environment")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('base_url = "https://a.example"', "https://a.example"),
        ("", "https://apim.example"),
        ('base_url = { env = "ORDERS_URL" }', "https://orders.example"),
    ],
)
def test_a_base_url_is_given_or_comes_from_the_environment(given: str, expected: str) -> None:
    environ = {"APIM_BASE_URL": "https://apim.example", "ORDERS_URL": "https://orders.example"}
    assert gateway(given, environ).base_url == expected


def test_a_gateway_says_how_to_prove_who_we_are() -> None:
    found = gateway(
        """
        base_url = "https://a.example"
        subscription_key = { env = "KEY" }
        subscription_key_header = "X-Key"
        bearer = { file = "secrets/token" }
        headers = { X-Plain = "a b", X-Secret = { env = "OTHER" } }
        proxy = "http://proxy.example:3128"
        ca_file = "ca.pem"
        retries = 0
        max_response_bytes = 1000
        """
    )
    assert found == Gateway(
        "orders",
        "https://a.example",
        headers=(("X-Plain", "a b"), ("X-Secret", Secret(env="OTHER"))),
        subscription_key=Secret(env="KEY"),
        subscription_key_header="X-Key",
        bearer=Secret(file=HERE / "secrets/token"),
        proxy="http://proxy.example:3128",
        ca_file=HERE / "ca.pem",
        retries=0,
        max_response_bytes=1000,
    )


def test_a_gateway_may_use_the_machines_identity() -> None:
    found = gateway(
        'base_url = "https://a.example"\n'
        'managed_identity = { resource = "api://x", client_id = "c", library = true }'
    )
    assert found.managed_identity == ManagedIdentity("api://x", "c", uses_library=True)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "ftp://a.example",
        "https://u:hunter2@a.example",
        "https://a.example?x=1",
        "https://127.1",
    ],
)
def test_a_base_url_that_cannot_be_used_is_a_warning_and_denied_later(url: str) -> None:
    found = read(f'[http.orders]\nbase_url = "{url}"\n[http.orders.tools.it]\nmethod = "GET"\npath = "/"')
    assert operation(found.specs[0]).destination is None
    assert found.specs[0].refuse is None
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("http.orders.base_url: ")
    assert "hunter2" not in found.warnings[0]
    assert "hunter2" not in operation(found.specs[0]).endpoint


# --- complaints

BASE = '[http.orders]\nbase_url = "https://a.example"\n'
TOOL = BASE + '[http.orders.tools.it]\nmethod = "GET"\npath = "/"\n'
COMPLAINTS = [
    ("[http]\norders = 1", "http.orders must be a table"),
    ('[http."a b"]\nbase_url = "x"', "http.a b is not a valid name"),
    ('[http."a.b"]\nbase_url = "x"', "http.a.b is not a valid name"),
    ("[http.orders]", "http.orders.base_url is not given, and the environment variable APIM_BASE_URL is"),
    (
        '[http.orders]\nbase_url = { env = "X" }',
        "http.orders.base_url is not given, and the environment variable X",
    ),
    ("[http.orders]\nbase_url = 5", "http.orders.base_url must be a URL"),
    ("[http.orders]\nbase_url = { }", "http.orders.base_url must be a URL"),
    (
        '[http.orders]\nbase_url = { evn = "X" }',
        "http.orders.base_url.evn is not a valid key; did you mean env?",
    ),
    (BASE + "retrys = 1", "http.orders.retrys is not a valid key; did you mean retries?"),
    (BASE + "zzz = 1", "http.orders.zzz is not a valid key; valid keys are base_url, bearer, "),
    (BASE + "retries = 11", "http.orders.retries must be a whole number from 0 to 10"),
    (BASE + "retries = true", "http.orders.retries must be a whole number"),
    (BASE + "max_response_bytes = 0", "http.orders.max_response_bytes must be a whole number"),
    (BASE + "timeout_ms = 0", "http.orders.timeout_ms must be a whole number"),
    (BASE + 'subscription_key = "abc"', "http.orders.subscription_key must be { env = "),
    (BASE + "subscription_key = { }", "http.orders.subscription_key must be { env = "),
    (BASE + 'subscription_key = { env = "A", file = "b" }', "http.orders.subscription_key must be { env = "),
    (BASE + 'bearer = { vault = "x" }', "http.orders.bearer.vault is not a valid key"),
    (BASE + "bearer = { env = 5 }", "http.orders.bearer.env must be a string"),
    (
        BASE + 'bearer = { env = "A" }\nmanaged_identity = { resource = "r" }',
        "http.orders.bearer cannot be combined with managed_identity",
    ),
    (
        BASE + 'bearer = { env = "A" }\nheaders = { authorization = { env = "B" } }',
        "http.orders.bearer cannot be combined with managed_identity",
    ),
    (BASE + "managed_identity = { }", "http.orders.managed_identity needs resource"),
    (BASE + "managed_identity = true", "http.orders.managed_identity must be a table"),
    (BASE + 'headers = { "a b" = "c" }', "http.orders.headers.a b is not the name of a header"),
    (BASE + 'headers = { Host = "c" }', "http.orders.headers.Host is a header that Portbook writes itself"),
    (
        BASE + 'headers = { X-Request-ID = "c" }',
        "http.orders.headers.X-Request-ID is a header that Portbook writes",
    ),
    (BASE + 'headers = { X-A = "a\\r\\nb" }', "http.orders.headers.X-A must be printable ASCII"),
    (BASE + "headers = { X-A = 5 }", "http.orders.headers.X-A must be { env = "),
    (
        BASE + 'subscription_key_header = "a b"',
        "http.orders.subscription_key_header is not the name of a header",
    ),
    (BASE + 'proxy = "proxy:3128"', "http.orders.proxy cannot be used: a URL starts with"),
    (BASE + 'proxy = "https://proxy"', "http.orders.proxy must be http://host:port"),
    (BASE + 'include = ["x"]', "http.orders.include applies to imported tools"),
    (BASE + "tools = 5", "http.orders.tools must be a table"),
    (BASE + "[http.orders.tools]\nit = 5", "http.orders.tools.it must be a table"),
    (BASE + "[http.orders.tools.It]\n", "http.orders.tools.It is not a valid name for a tool"),
    (BASE + "[http.orders.tools.it]\n", "http.orders.tools.it.method must be one of GET, "),
    (BASE + '[http.orders.tools.it]\nmethod = "TRACE"\n', "http.orders.tools.it.method must be one of GET, "),
    (BASE + '[http.orders.tools.it]\nmethod = "GET"\n', "http.orders.tools.it.path must start with /"),
    (TOOL + "pth = 1", "http.orders.tools.it.pth is not a valid key; did you mean path?"),
    (TOOL + 'effect = "none"', "http.orders.tools.it.effect must be one of read, write, destructive"),
    (TOOL + "effect = []", "http.orders.tools.it.effect must be one of read, write, destructive"),
    (TOOL + "timeout_ms = 1.5", "http.orders.tools.it.timeout_ms must be a whole number"),
    (TOOL + "input = true", "http.orders.tools.it.input must be a table"),
    (
        TOOL + "input = { default = 1979-05-27 }",
        "http.orders.tools.it.input has a value that JSON cannot",
    ),
    (TOOL + "output = 5", "http.orders.tools.it.output must be a JSON Schema"),
    (TOOL + 'query = "x"', "http.orders.tools.it.query must be a list of strings"),
    (TOOL + 'idempotent = "yes"', "http.orders.tools.it.idempotent must be true or false"),
    (TOOL + 'response = "JSON"', "http.orders.tools.it.response must be a content type"),
    (TOOL + 'header = { x = "Authorization" }', "http.orders.tools.it.header.x must be the name of a header"),
    (TOOL + 'header = { x = "cookie" }', "http.orders.tools.it.header.x must be the name of a header"),
    (TOOL + 'header = { x = "X-Trace-ID" }', "http.orders.tools.it.header.x must be the name of a header"),
    (TOOL + 'header = { x = "Ocp-Apim-Subscription-Key" }', "http.orders.tools.it.header.x must be the name"),
]


@pytest.mark.parametrize(("text", "expected"), COMPLAINTS, ids=[row[1][:60] for row in COMPLAINTS])
def test_what_cannot_be_used_is_named_with_its_place(text: str, expected: str) -> None:
    assert complaint(text).startswith(expected)


@pytest.mark.parametrize(
    "path",
    [
        "orders",
        "//x/{",
        "/{}",
        "/{a}/{a}",
        "/a/../b",
        "/./a",
        "/a#b",
        "/a b",
        "/é",
        "/a?x={id}",
        "/{a",
        "/a}",
        "",
    ],
)
def test_a_path_that_is_no_template_is_refused(path: str) -> None:
    text = BASE + f'[http.orders.tools.it]\nmethod = "GET"\npath = "{path}"'
    assert complaint(text).startswith("http.orders.tools.it.path must")


def test_no_argument_goes_into_a_header_of_the_operators() -> None:
    text = TOOL.replace("[http.orders.tools", 'headers = { X-Tenant = "a" }\n[http.orders.tools', 1)
    assert "header.x must be" in complaint(text + 'header = { x = "x-tenant" }')


# --- tools of an OpenAPI document

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/orders/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {"operationId": "getOrder", "summary": "One order.", "responses": {}},
            "delete": {"operationId": "deleteOrder", "responses": {}},
        },
        "/search": {"post": {"operationId": "search", "responses": {}}},
        "/upload": {
            "post": {
                "operationId": "upload",
                "requestBody": {"required": True, "content": {"multipart/form-data": {}}},
                "responses": {},
            }
        },
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "api.json").write_text(json.dumps(DOCUMENT))
    return tmp_path


IMPORT = BASE + 'openapi = "api.json"\n'


@pytest.mark.covers("002.tools.openapi-imported")
def test_the_operations_of_a_document_become_tools(folder: Path) -> None:
    found = read(IMPORT + 'effects = { search = "read" }', folder=folder)
    assert [(spec.name, spec.effect, operation(spec).is_idempotent) for spec in found.specs] == [
        ("orders.get_order", Effect.READ, True),
        ("orders.delete_order", Effect.DESTRUCTIVE, False),
        ("orders.search", Effect.READ, False),
    ]
    assert found.warnings == ["orders.upload is not served: its body is not JSON"]
    spec = found.specs[0]
    assert spec.description == "One order."
    assert (operation(spec).method, operation(spec).path) == ("GET", "/orders/{id}")
    Catalog(found.specs)


def test_what_a_document_would_put_into_requests_is_not_served(tmp_path: Path) -> None:
    """A document is often somebody else's."""
    evil = {"application/x\r\nX-Evil: 1\r\nX+json": {}}
    paths = {
        "/a": {"get": {"operationId": "accept", "responses": {"200": {"content": evil}}}},
        "/b": {"post": {"operationId": "type", "requestBody": {"content": evil}}},
        "/c?x=1 HTTP/1.1\r\nX-Smuggled: 1\r\nY: ": {"get": {"operationId": "line"}},
        "/d?x=1": {"get": {"operationId": "good"}},
    }
    (tmp_path / "api.json").write_text(json.dumps({"openapi": "3.1.0", "paths": paths}))
    found = read(IMPORT, folder=tmp_path)
    assert [spec.name for spec in found.specs] == ["orders.good"]
    assert [warning.partition(": ")[::2] for warning in found.warnings] == [
        ("orders.accept is not served", "it names a content type that is not valid in a header"),
        ("orders.type is not served", "it names a content type that is not valid in a header"),
        (
            "orders.line is not served",
            "its path must start with / and be printable ASCII, with names in braces: /orders/{id}",
        ),
    ]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ('include = ["get_*"]', ["orders.get_order"]),
        ('exclude = ["*_order", "upload"]', ["orders.search"]),
        ('include = ["*_order"]\nexclude = ["delete_*"]', ["orders.get_order"]),
    ],
)
def test_patterns_choose_what_is_imported(folder: Path, given: str, names: list[str]) -> None:
    found = read(IMPORT + given, folder=folder)
    assert ([spec.name for spec in found.specs], found.warnings) == (names, [])


def test_patterns_that_choose_nothing_are_a_warning(folder: Path) -> None:
    found = read(IMPORT + 'include = ["nothing"]', folder=folder)
    assert found.specs == []
    assert found.warnings == [
        "http.orders.openapi: none of its operations is served; check include and exclude"
    ]


def test_a_table_changes_what_it_names_of_an_imported_tool(folder: Path) -> None:
    text = (
        IMPORT
        + 'exclude = ["upload"]\n[http.orders.tools.get_order]\neffect = "write"\ntimeout_ms = 9\nretries = 1'
    )
    found = {spec.name: spec for spec in read(text, folder=folder).specs}
    spec = found["orders.get_order"]
    assert (spec.effect, spec.timeout_ms, spec.description) == (Effect.WRITE, 9, "One order.")
    assert (operation(spec).path, operation(spec).retries) == ("/orders/{id}", 1)
    assert not operation(spec).is_idempotent  # it writes now
    assert spec.refuse is not None
    assert spec.refuse({"id": ".."}) is not None


def test_a_table_with_a_path_stands_for_an_imported_tool(folder: Path) -> None:
    text = IMPORT + 'exclude = ["upload"]\n[http.orders.tools.search]\nmethod = "GET"\npath = "/find"'
    found = {spec.name: spec for spec in read(text, folder=folder).specs}
    assert operation(found["orders.search"]).path == "/find"
    assert len(found) == 3


def test_a_table_cannot_change_the_schema_of_an_imported_tool(folder: Path) -> None:
    text = IMPORT + "[http.orders.tools.search]\ninput = {}"
    assert complaint(text, folder=folder).startswith("http.orders.tools.search.input is not a valid key")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('openapi = "none.json"', "http.orders.openapi cannot be imported: none.json: cannot be read"),
        ('openapi = "api.json"\neffects = { x = "y" }', "http.orders.effects.x must be one of read"),
        ('openapi = "twice.json"', "http.orders.openapi has two operations"),
        (
            'openapi = "old.json"',
            "http.orders.openapi cannot be imported: old.json#: must be OpenAPI 3.0 or 3.1",
        ),
    ],
)
def test_a_document_that_cannot_be_imported_is_refused(folder: Path, text: str, expected: str) -> None:
    twice = {
        "openapi": "3.0.3",
        "paths": {f"/{n}": {"get": {"operationId": "same", "responses": {}}} for n in range(2)},
    }
    (folder / "twice.json").write_text(json.dumps(twice))
    (folder / "old.json").write_text('{"swagger":"2.0"}')
    assert complaint(BASE + text, folder=folder).startswith(expected)
