"""The `[http]` table: tools and gateways as declared, and everything that is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.gateway import Gateway
from portbook.apis.left_out_operations import Cause, LeftOutOperation
from portbook.errors import Reason
from portbook.tools.catalog import Catalog
from portbook.tools.http_operation import HttpOperation, Parameter, ParameterPlace
from portbook.tools.spec import Effect, ToolSpec
from support.http_tables import BASE, complaint, operation, read


def one(text: str) -> ToolSpec:
    """The tool of a gateway that has a base URL and one tool."""
    found = read(f'[http.orders]\nbase_url = "http://127.0.0.1:9000"\n[http.orders.tools.it]\n{text}')
    assert len(found.specs) == 1
    return found.specs[0]


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
            declared_name="orders.get_order",
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


# --- complaints


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
                "requestBody": {"required": True, "content": {"multipart/related": {}}},
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
    (warning,) = found.warnings
    assert warning == (
        "http.orders.openapi is served in part: 1 of 4 operations of api.json is left out: "
        "1 with a feature that is not supported; "
        "`portbook tools --left-out` lists them"
    )
    assert found.left_out == [
        LeftOutOperation(
            "orders.upload",
            "api.json",
            "/paths/~1upload/post",
            "POST",
            Cause.UNSUPPORTED,
            "no content type of its body can be sent",
            ("POST /upload",),
        )
    ]
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
    assert [(each.name, each.sentence) for each in found.left_out] == [
        ("orders.accept", "it names a content type that is not valid in a header"),
        ("orders.type", "no content type of its body can be sent"),
        (
            "orders.line",
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
    found = read(IMPORT + 'include = ["nothing*"]', folder=folder)
    assert found.specs == []
    assert found.warnings == [
        "http.orders.include has 'nothing*', which matches no operation of the document",
        "http.orders.openapi gives no tool; check include",
    ]


def test_a_warning_names_only_settings_that_were_written(folder: Path) -> None:
    found = read(IMPORT + 'exclude = ["*"]', folder=folder)
    assert found.warnings == ["http.orders.openapi gives no tool; check exclude"]


def test_a_document_without_operations_is_a_warning(folder: Path) -> None:
    (folder / "api.json").write_text('{"openapi": "3.1.0"}')
    found = read('[http.orders]\nbase_url = "https://a.example"\nopenapi = "api.json"', folder=folder)
    assert found.warnings == ["http.orders.openapi gives no tool; the document has none"]


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


def test_a_table_may_have_the_method_and_path_of_an_imported_tool(folder: Path) -> None:
    text = IMPORT + "[http.orders.tools.'POST /search']\neffect = 'destructive'\ntimeout_ms = 7"
    found = {spec.name: spec for spec in read(text, folder=folder).specs}
    assert (found["orders.search"].effect, found["orders.search"].timeout_ms) == (Effect.DESTRUCTIVE, 7)
    assert len(found) == 3


@pytest.mark.parametrize(
    ("key", "complaint_of"),
    [
        (
            "POST /searches",
            "names 'POST /searches', and the document has no such operation; did you mean POST /search?",
        ),
        ("serch", "names 'serch', and the document has no such operation; did you mean search?"),
        ("both", "names 'both', which is not the name of a tool: it is shared or too long; write 'both_"),
    ],
)
def test_a_table_for_an_operation_that_is_not_served_is_refused(
    tmp_path: Path, key: str, complaint_of: str
) -> None:
    both: dict[str, Any] = {"get": {"operationId": "both"}, "put": {"operationId": "both"}}
    (tmp_path / "api.json").write_text(
        json.dumps({**DOCUMENT, "paths": {**DOCUMENT["paths"], "/both": both}})
    )
    text = IMPORT + f"[http.orders.tools.'{key}']\neffect = 'read'"
    said = complaint(text, folder=tmp_path)
    assert said.startswith(f"http.orders.tools.{key} {complaint_of}")
    assert said.endswith("; a new tool needs a method and a path")


def test_a_method_and_path_of_two_documents_names_neither(folder: Path) -> None:
    (folder / "b.json").write_text(json.dumps(DOCUMENT))
    text = (
        BASE
        + "openapi = ['api.json', 'b.json']\ninclude = ['POST /search']\n"
        + "[http.orders.tools.'POST /search']\neffect = 'read'"
    )
    assert "names an operation that several documents have" in complaint(text, folder=folder)


def test_a_table_cannot_change_the_schema_of_an_imported_tool(folder: Path) -> None:
    text = IMPORT + "[http.orders.tools.search]\ninput = {}"
    assert complaint(text, folder=folder).startswith("http.orders.tools.search.input is not a valid key")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('openapi = "none.json"', "http.orders.openapi cannot be imported: none.json: does not exist"),
        ('openapi = "api.json"\neffects = { x = "y" }', "http.orders.effects.x must be one of read"),
        (
            'openapi = "old.json"',
            "http.orders.openapi cannot be imported: old.json#: must be OpenAPI 3.0 or 3.1",
        ),
    ],
)
def test_a_document_that_cannot_be_imported_is_refused(folder: Path, text: str, expected: str) -> None:
    (folder / "old.json").write_text('{"swagger":"1.2"}')
    assert complaint(BASE + text, folder=folder).startswith(expected)


def document_of(folder: Path, **paths: Any) -> None:
    operations = {f"/{name}": {"get": {"responses": {}, **given}} for name, given in paths.items()}
    (folder / "api.json").write_text(json.dumps({"openapi": "3.1.0", "paths": operations}))


def test_operations_of_one_name_are_told_apart_by_a_digest(tmp_path: Path) -> None:
    document_of(tmp_path, a={"operationId": "same"}, b={"operationId": "Same"}, c={"operationId": "other"})
    names = [spec.name for spec in read(IMPORT, folder=tmp_path).specs]
    assert names == ["orders.same_hn3g7tdbbm", "orders.same_pigk6kg9ew", "orders.other"]
    document_of(tmp_path, b={"operationId": "Same"}, c={"operationId": "other"}, a={"operationId": "same"})
    assert sorted(spec.name for spec in read(IMPORT, folder=tmp_path).specs) == sorted(names)


def test_a_long_name_is_shortened_as_over_mcp(tmp_path: Path) -> None:
    document_of(tmp_path, a={"operationId": "x" * 200 + "_end"}, b={"operationId": "x" * 201 + "_end"})
    first, second = (spec.name for spec in read(IMPORT, folder=tmp_path).specs)
    assert len(first) == len(second) == 128
    assert first != second
    assert first.endswith("xxx_end")
    assert first.startswith("orders.")
    Catalog(read(IMPORT, folder=tmp_path).specs)


def test_a_gateways_name_leaves_room_for_those_of_a_document(tmp_path: Path) -> None:
    document_of(tmp_path, a={})
    text = f'[http.{"g" * 100}]\nbase_url = "https://a.example"\nopenapi = "api.json"'
    assert "too long a name" in complaint(text, folder=tmp_path)


# Thirty steps, each evaluated twice as often as the one before, and one that leads back to itself.
BOMB: dict[str, Any] = {
    f"s{n}": {"allOf": [{"$ref": f"#/components/schemas/s{n + 1}"}] * 2} for n in range(30)
} | {"s30": {"type": "string"}, "loop": {"allOf": [{"$ref": "#/components/schemas/loop"}]}}


def document_with_bombs(folder: Path, **paths: Any) -> None:
    document_of(folder, **paths)
    given = json.loads((folder / "api.json").read_text())
    (folder / "api.json").write_text(json.dumps({**given, "components": {"schemas": BOMB}}))


def takes(name: str) -> dict[str, Any]:
    return {"parameters": [{"name": "x", "in": "query", "schema": {"$ref": f"#/components/schemas/{name}"}}]}


def gives(name: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"responses": {"200": {"content": {"application/json": {"schema": schema}}}}}


@pytest.mark.parametrize("bomb", ["s0", "loop"])
def test_a_schema_that_cannot_be_used_takes_nothing_else_down(tmp_path: Path, bomb: str) -> None:
    document_with_bombs(tmp_path, good=gives("s30"), a=takes(bomb), b=gives(bomb), small=gives("s20"))
    found = read(IMPORT, folder=tmp_path)
    assert [spec.name for spec in found.specs] == ["orders.get_good", "orders.get_small"]
    assert [(each.name, each.cause) for each in found.left_out] == [
        ("orders.get_a", Cause.INPUT_SCHEMA),
        ("orders.get_b", Cause.OUTPUT_SCHEMA),
    ]


def test_a_table_may_replace_the_output_schema_that_cannot_be_used(tmp_path: Path) -> None:
    document_with_bombs(tmp_path, b=gives("s0"))
    assert read(IMPORT, folder=tmp_path).specs == []
    found = read(IMPORT + '[http.orders.tools.get_b]\noutput = { type = "object" }', folder=tmp_path)
    assert [(spec.name, spec.output_schema) for spec in found.specs] == [("orders.get_b", {"type": "object"})]
    assert found.left_out == []


def test_results_that_cannot_be_checked_are_given_only_where_the_operator_says_so(tmp_path: Path) -> None:
    document_with_bombs(tmp_path, a=takes("s0"), b=gives("s0"), good=gives("s30"))
    assert [spec.name for spec in read(IMPORT, folder=tmp_path).specs] == ["orders.get_good"]
    found = read(IMPORT + 'unchecked_outputs = "allow"', folder=tmp_path)
    assert [(spec.name, spec.output_schema is True, spec.is_result_unchecked) for spec in found.specs] == [
        ("orders.get_b", True, True),
        ("orders.get_good", False, False),
    ]
    assert [each.name for each in found.left_out] == ["orders.get_a"]
    assert any("not checked, such as orders.get_b" in warning for warning in found.warnings)
    complaint_of = complaint(IMPORT + 'unchecked_outputs = "yes"', folder=tmp_path)
    assert complaint_of == "http.orders.unchecked_outputs must be one of leave-out, allow"


@pytest.mark.parametrize("member", ["tenant", "other"])
def test_a_declared_tools_body_may_have_a_name_of_its_query_only_where_it_is_described(member: str) -> None:
    schema = f"input = {{ type = 'object', properties = {{ {member} = {{}} }} }}"
    spec = one(f"method = 'POST'\npath = '/orders?tenant=acme'\n{schema}")
    assert spec.refuse is not None
    assert (spec.refuse({"tenant": "x"}) is None) is (member == "tenant")
