"""`SchemaRegistry`: contracts and bundles of a folder, and what is said about those that cannot be used."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from portbook import SchemaRegistry, Toolset
from portbook.schema.engine import SchemaViolation, validator_for
from portbook.tools.contract_registry import BadBundle, shipped_folder
from portbook.tools.toolset_loader import load_toolsets
from support.portbook_process import SAMPLE_TOOLS, run


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def changed(document: Any, pointer: str, value: Any = ...) -> Any:
    """A copy of `document` with the value at `pointer` replaced, or taken out."""
    result = copy.deepcopy(document)
    *way, last = pointer.split("/")[1:]
    place: Any = result
    for step in way:
        place = place[int(step) if isinstance(place, list) else step]
    if value is ...:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return result


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A schema root with an empty folder of bundles."""
    (tmp_path / "tools").mkdir()
    return tmp_path


def write(root: Path, name: str, content: Any) -> Path:
    path = root / "tools" / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


# ----------------------------------------------------------------------------------------- what is shipped


@pytest.mark.parametrize("name", ["docs.search", "mcp.tool:docs.search"])
def test_a_tool_is_loaded_by_either_of_its_names(name: str) -> None:
    io = SchemaRegistry().load_tool_io(name)
    assert io.tool == "docs.search"
    assert io.input_validator is io.input
    assert io.output_validator is io.output
    assert io.input is not io.output


def test_loading_twice_gives_the_same_objects() -> None:
    registry = SchemaRegistry()
    assert registry.load_tool_io("docs.search") is registry.load_tool_io("mcp.tool:docs.search")
    assert registry.load_envelope() is registry.load_envelope()
    assert registry.bundles() is registry.bundles()


def test_another_registry_of_the_same_schemas_gives_the_same_validators() -> None:
    one, other = SchemaRegistry(), SchemaRegistry(shipped_folder("schemas"))
    assert one.load_envelope() is other.load_envelope()
    assert one.load_tool_io("docs.search").input is other.load_tool_io("docs.search").input


@pytest.mark.parametrize(
    "name",
    [
        "",
        "mcp.tool:",
        "docs",
        "docs.search ",
        "Docs.Search",
        "mcp.tool:mcp.tool:docs.search",
        "../docs.search",
    ],
)
def test_an_unknown_tool_is_a_key_error(name: str) -> None:
    with pytest.raises(KeyError):
        SchemaRegistry().load_tool_io(name)


INPUTS = [
    case("a query", {"query": "x"}, []),
    case("and how many", {"query": "x", "topK": 100}, []),
    case("a whole number with a point", {"query": "x", "topK": 5.0}, []),
    case("no query", {}, [("", "required")]),
    case("no query, but how many", {"topK": 5}, [("", "required")]),
    case("an empty query", {"query": ""}, [("/query", "minLength")]),
    case("no string", {"query": 5}, [("/query", "type")]),
    case("too long a query", {"query": "x" * 1001}, [("/query", "maxLength")]),
    case("too few", {"query": "x", "topK": 0}, [("/topK", "minimum")]),
    case("too many", {"query": "x", "topK": 101}, [("/topK", "maximum")]),
    case("half a hit", {"query": "x", "topK": 1.5}, [("/topK", "type")]),
    case("something else", {"query": "x", "top_k": 5}, [("", "additionalProperties")]),
    case("no object", ["x"], [("", "type")]),
]


@pytest.mark.parametrize(("arguments", "found"), INPUTS)
def test_the_input_of_docs_search_is_guarded(arguments: Any, found: list[tuple[str, str]]) -> None:
    validator = SchemaRegistry().load_tool_io("docs.search").input
    assert [(finding.pointer, finding.keyword) for finding in validator.findings(arguments)] == found
    assert validator.is_valid(arguments) is not bool(found)


def test_a_missing_query_is_told_by_name() -> None:
    validator = SchemaRegistry().load_tool_io("docs.search").input
    with pytest.raises(SchemaViolation, match='missing property "query"'):
        validator.validate({"topK": 3})


HIT: Any = {
    "id": "a.md#b",
    "score": 1.5,
    "rank": 1,
    "document": {"title": "B", "snippet": "x", "sourcePath": "a.md"},
}
RESULT: Any = {"query": "x", "total": 2, "hits": [HIT, changed(HIT, "/rank", 2)]}

MUTATIONS = [
    *(case(f"no {pointer}", pointer, ...) for pointer in (
        "/query", "/total", "/hits", "/hits/1/id", "/hits/1/score", "/hits/1/rank", "/hits/1/document",
        "/hits/1/document/title", "/hits/1/document/snippet", "/hits/1/document/sourcePath",
    )),
    *(case(f"{pointer} = {value!r}"[:60], pointer, value) for pointer, value in (
        ("/query", 5), ("/total", -1), ("/total", 1.5), ("/total", "2"), ("/hits", {}), ("/hits", None),
        ("/hits", [HIT] * 101), ("/hits/0", None), ("/hits/0", []), ("/hits/0", "a.md"), ("/hits/1/id", ""),
        ("/hits/1/id", 5), ("/hits/1/score", -0.5), ("/hits/1/score", "1.5"), ("/hits/1/score", None),
        ("/hits/1/rank", 0), ("/hits/1/rank", 1.5), ("/hits/1/document", []), ("/hits/1/document", None),
        ("/hits/1/document/title", None), ("/hits/1/document/snippet", 5),
        ("/hits/1/document/sourcePath", []),
        ("/more", 1), ("/hits/1/more", 1), ("/hits/1/document/more", 1), ("/hits/1/score", float("nan")),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("pointer", "value"), MUTATIONS)
def test_the_output_of_docs_search_is_guarded_in_every_hit(pointer: str, value: Any) -> None:
    validator = SchemaRegistry().load_tool_io("docs.search").output
    assert validator.is_valid(RESULT)
    broken = changed(RESULT, pointer, value)
    assert not validator.is_valid(broken)
    assert len(validator.findings(broken)) == 1


def test_a_result_without_hits_is_a_result() -> None:
    assert (
        SchemaRegistry().load_tool_io("docs.search").output.is_valid({"query": "x", "total": 0, "hits": []})
    )


# --------------------------------------------------------------------------------------- a root of one's own


def test_a_root_with_bundles_only_takes_the_contracts_from_portbook(root: Path) -> None:
    write(root, "any.json", {"tool": "my.tool", "input": {"required": ["a"]}, "description": "Mine."})
    registry = SchemaRegistry(root)
    assert registry.load_envelope() is SchemaRegistry().load_envelope()
    io = registry.load_tool_io("mcp.tool:my.tool")
    assert [io.input.is_valid(value) for value in ({"a": 1}, {})] == [True, False]
    assert registry.bundles()["my.tool"].description == "Mine."


def test_a_tool_of_portbooks_own_is_known_in_every_root_and_the_roots_bundle_wins(root: Path) -> None:
    for name in ("docs.search", "list_schemas"):
        io = SchemaRegistry(root).load_tool_io(name)
        assert io.input is SchemaRegistry().load_tool_io(name).input
    write(root, "any.json", {"tool": "list_schemas", "input": {"required": ["a"]}})
    assert not SchemaRegistry(root).load_tool_io("list_schemas").input.is_valid({})


@pytest.mark.covers("000.tool-io.every-tool")
def test_every_tool_that_is_served_is_known(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "portbook.toml").write_text('[assets]\nschemas = "schemas"\n[docs]\nenabled = true\n')
    served = json.loads(run("tools", "--json", str(SAMPLE_TOOLS), cwd=tmp_path).out)["tools"]
    registry = SchemaRegistry()
    for toolset in load_toolsets(str(SAMPLE_TOOLS)):
        registry.add(toolset.specs())
    assert {"docs.search", "populate_backend"} < {tool["name"] for tool in served}
    for tool in served:
        io = registry.load_tool_io(tool["name"])
        assert io.input is validator_for(tool["input"])
        assert io.output is validator_for(tool["output"])


def test_a_tool_that_is_added_replaces_the_one_of_its_name() -> None:
    registry, toolset = SchemaRegistry(), Toolset("mine")

    @toolset.tool(effect="read")
    def list_schemas(wanted: int) -> int:
        """Count."""
        return wanted

    assert registry.load_tool_io("list_schemas").input.is_valid({})
    registry.add(toolset.specs())
    assert not registry.load_tool_io("list_schemas").input.is_valid({})


def test_without_an_output_any_json_may_be_returned(root: Path) -> None:
    write(root, "a.json", {"tool": "a", "input": {}})
    output = SchemaRegistry(root).load_tool_io("a").output
    assert output is validator_for(True)
    assert output.is_valid([None])
    assert not output.is_valid(float("nan"))


def test_an_output_may_be_a_boolean(root: Path) -> None:
    write(root, "a.json", {"tool": "a", "input": {}, "output": False})
    assert not SchemaRegistry(root).load_tool_io("a").output.is_valid(None)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_root_may_be_a_string_or_a_path(kind: Any, root: Path) -> None:
    write(root, "a.json", {"tool": "a", "input": {}})
    assert set(SchemaRegistry(schema_root=kind(root)).bundles()) == {"a"}


def test_a_root_may_have_contracts_of_its_own(root: Path) -> None:
    (root / "envelope.schema.json").write_text('{"const": "mine"}')
    (root / "tool_io.schema.json").write_text('{"required": ["tool", "input", "owner"]}')
    write(root, "a.json", {"tool": "a", "input": {}})
    registry = SchemaRegistry(root)
    assert registry.load_envelope().is_valid("mine")
    with pytest.raises(BadBundle, match='missing property "owner"'):
        registry.bundles()


def test_contracts_of_a_root_refer_to_each_other_and_to_portbooks_own_by_either_name(root: Path) -> None:
    (root / "order.json").write_text(
        '{"$id": "order.v1",'
        ' "properties": {"from": {"$ref": "place.json"}, "why": {"$ref": "evidence.v0.1"}}}'
    )
    (root / "place.json").write_text('{"$id": "place.v1", "type": "string"}')
    registry = SchemaRegistry(root)
    order = registry.load("order.v1")
    assert order is registry.load("order.json")
    assert order.is_valid({"from": "Hull", "why": {"field": "x", "source": "artifact:a"}})
    assert [finding.pointer for finding in order.findings({"from": 5, "why": {"field": "x"}})] == [
        "/from",
        "/why",
    ]


def test_a_contract_of_the_roots_own_wins(root: Path) -> None:
    (root / "mine.json").write_text('{"$id": "evidence.v0.1", "const": "mine"}')
    assert SchemaRegistry(root).load("evidence.v0.1").is_valid("mine")
    assert SchemaRegistry(root).load("evidence.schema.v0.1.json").is_valid({"field": "x", "source": "y"})


def test_a_contract_that_cannot_be_read_or_compiled_is_named(root: Path) -> None:
    path = root / "broken.json"
    path.write_text('{"$id": "x", "properties": {"a": {"$ref": "gone.json"}}}')
    with pytest.raises(BadBundle, match="refers to something that is not in this document") as raised:
        SchemaRegistry(root).load("x")
    assert (raised.value.path, raised.value.pointer) == (path, "/properties/a/$ref")
    path.write_text("{")
    with pytest.raises(BadBundle, match="the text is incomplete"):
        SchemaRegistry(root).load("evidence.v0.1")


@pytest.mark.parametrize(
    "make", [lambda root: None, lambda root: root.mkdir(), lambda root: (root / "tools").mkdir(parents=True)]
)
def test_a_root_without_bundles_is_empty(make: Any, tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(root)
    registry = SchemaRegistry(root)
    assert registry.bundles() == {}
    assert registry.load_envelope() is SchemaRegistry().load_envelope()


def test_files_of_another_kind_are_not_looked_at(root: Path) -> None:
    write(root, "README.md", b"# not a bundle")
    write(root, "draft.json.bak", b"not JSON")
    (root / "other").mkdir()
    (root / "other" / "x.json").write_text("not JSON")
    assert SchemaRegistry(root).bundles() == {}


def test_a_bundle_is_for_the_tool_that_it_names_whatever_its_file_is_called(root: Path) -> None:
    path = write(root, "zzz.json", {"tool": "a", "input": {}})
    assert SchemaRegistry(root).bundles()["a"].path == path


def test_nothing_is_read_before_it_is_asked_for(root: Path) -> None:
    write(root, "broken.json", b"not JSON")
    registry = SchemaRegistry(root)
    registry.load_envelope()
    with pytest.raises(BadBundle):
        registry.load_tool_io("anything")


GOOD: Any = {"tool": "a", "input": {"properties": {"x": {"type": "string"}}}, "output": {"type": "object"}}
D7 = "http://json-schema.org/draft-07/schema#"


def spoiled(name: str, at: str, value: Any, said: str, *, pointer: str | None = None) -> Any:
    """A good bundle with one thing changed, and what is found: there, unless it says elsewhere."""
    return case(name, changed(GOOD, at, value), at if pointer is None else pointer, said)


X = "/input/properties/x"
NO_TYPE = 'must be one of "array"'
NO_NAME = "does not match the pattern"
UNCLEAR = "check its spelling"


@pytest.mark.parametrize(
    ("content", "pointer", "said"),
    [
        spoiled("a type that is none", f"{X}/type", "banana", NO_TYPE),
        spoiled("in the output", "/output/type", "banana", NO_TYPE),
        spoiled(
            "an escaped name",
            X,
            {"properties": {"a/b": 5}},
            "expected boolean",
            pointer=f"{X}/properties/a~1b",
        ),
        spoiled("elsewhere", X, {"$ref": "http://e.test/"}, "which is never fetched", pointer=f"{X}/$ref"),
        spoiled("nowhere", "/output/items", {"$ref": "#/$defs/x"}, UNCLEAR, pointer="/output/items/$ref"),
        spoiled("in the bundle", "/output/items", {"$ref": "#/input"}, UNCLEAR, pointer="/output/items/$ref"),
        spoiled("another dialect", "/input/$schema", D7, "must be https://json-schema.org/draft/2020-12/"),
        spoiled("a pattern", f"{X}/pattern", "(?=a)", "remove lookaround"),
        spoiled("a circle", "/input", {"$ref": "#"}, "refers to itself"),
        spoiled("no tool", "/tool", ..., 'missing property "tool"', pointer=""),
        spoiled("no input", "/input", ..., 'missing property "input"', pointer=""),
        spoiled("a tool with its prefix", "/tool", "mcp.tool:a", NO_NAME),
        spoiled("a tool in capitals", "/tool", "A", NO_NAME),
        spoiled("a tool with a line break", "/tool", "a\n", NO_NAME),
        spoiled("a tool that is too long", "/tool", "a" * 129, "longer than 128 characters"),
        spoiled("an input that is true", "/input", True, "expected object"),
        spoiled("something else", "/inputs", {}, 'unexpected property "inputs"', pointer=""),
        spoiled("a description that is none", "/description", 5, "expected string"),
        case("a list", [GOOD], "", "expected object"),
        case("no JSON", b"not JSON", "", "a JSON value is expected here (line 1, column 2)"),
        case("nothing", b"", "", "the text is empty"),
        case("a key twice", b'{"tool":"a",\n"tool":"b"}', "", "the same key twice; keep one (line 2, column"),
        case("not UTF-8", b'{"tool":"\xff","input":{}}', "", "not valid UTF-8; encode it"),
        case(
            "a byte order mark",
            b"\xef\xbb\xbf{}",
            "",
            "starts with a byte order mark; send UTF-8 without one",
        ),
    ],
)
def test_a_bundle_that_cannot_be_used_is_named_with_the_place_and_what_to_do(
    content: Any, pointer: str, said: str, root: Path
) -> None:
    path = write(root, "a.json", content)
    with pytest.raises(BadBundle) as raised:
        SchemaRegistry(root).load_tool_io("a")
    assert (raised.value.path, raised.value.pointer) == (path, pointer)
    place = f"{path}: {pointer or '(root)'}: "
    assert str(raised.value).startswith(place)
    assert said in str(raised.value).removeprefix(place)


def test_one_broken_bundle_stops_every_tool_of_the_folder(root: Path) -> None:
    write(root, "a.json", GOOD)
    broken = write(root, "b.json", b"{}")
    with pytest.raises(BadBundle) as raised:
        SchemaRegistry(root).load_tool_io("a")
    assert raised.value.path == broken


def test_two_bundles_for_one_tool_are_refused_with_both_names(root: Path) -> None:
    write(root, "a.json", GOOD)
    second = write(root, "b.json", GOOD)
    with pytest.raises(BadBundle, match=r"/tool: a\.json is for the same tool; keep one") as raised:
        SchemaRegistry(root).bundles()
    assert (raised.value.path, raised.value.pointer) == (second, "/tool")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        case("a folder", lambda path: path.mkdir(), "cannot be read: Is a directory"),
        case(
            "a link to nowhere",
            lambda path: path.symlink_to("gone"),
            "cannot be read: No such file or directory",
        ),
        case("a link to itself", lambda path: path.symlink_to(path.name), "cannot be read: Too many levels"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(make: Any, said: str, root: Path) -> None:
    path = root / "tools" / "a.json"
    make(path)
    with pytest.raises(BadBundle, match=said) as raised:
        SchemaRegistry(root).bundles()
    assert raised.value.path == path


def test_a_contract_that_does_not_compile_is_named(root: Path) -> None:
    (root / "envelope.schema.json").write_text('{"type": "banana"}')
    with pytest.raises(BadBundle, match=r"envelope\.schema\.json: /type: must be one of"):
        SchemaRegistry(root).load_envelope()


def test_a_bad_bundle_is_a_value_error(root: Path) -> None:
    write(root, "a.json", b"")
    with pytest.raises(ValueError, match="the text is empty"):
        SchemaRegistry(root).bundles()


def test_a_registry_that_failed_can_be_asked_again_once_it_is_mended(root: Path) -> None:
    write(root, "a.json", b"")
    registry = SchemaRegistry(root)
    with pytest.raises(BadBundle):
        registry.bundles()
    write(root, "a.json", GOOD)
    assert set(registry.bundles()) == {"a"}
