"""The library: what is listed, in which order, what is left out and said, and that it is read once."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portbook.assets.asset_tools_and_resources import asset_tools
from portbook.assets.library import EMPTY, Library, load_library
from portbook.assets.schema_choice import named_schema
from portbook.assets.schema_files import component_of, schema_name, version_of
from support.asset_samples import ASSET, TONE, Write
from support.portbook_process import TESTS

CASES = json.loads((TESTS / "corpora" / "path_cases.json").read_text())
CANARY = "CANARY-PATH"


def test_schemas_and_examples_are_listed_with_the_folder_as_it_was_named(
    library: Library, tmp_path: Path
) -> None:
    assert [(schema.name, schema.version, schema.path) for schema in library.schemas] == [
        ("synesthetic-asset", "0.7.0", f"{tmp_path}/schemas/synesthetic-asset.schema.json"),
        ("tone", "0.2.1", f"{tmp_path}/schemas/tone.schema.json"),
    ]
    assert [(example.component, example.path, example.schema) for example in library.examples] == [
        (
            "SynestheticAsset_Example1",
            f"{tmp_path}/examples/SynestheticAsset_Example1.json",
            "synesthetic-asset",
        ),
        ("tone", f"{tmp_path}/examples/tone.json", "tone"),
    ]


def test_a_relative_folder_gives_relative_paths(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("libs/jsonschema/tone.json", TONE)
    monkeypatch.chdir(tmp_path)
    [schema] = load_library(Path("libs/jsonschema"), None).schemas
    assert (schema.name, schema.path) == ("tone", "libs/jsonschema/tone.json")


def test_a_folder_is_listed_below_the_projects_folder_however_it_was_configured(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("project/schemas/tone.json", TONE)
    write("elsewhere/tone.json", TONE)
    project = tmp_path / "project"
    (tmp_path / "link").symlink_to(project)
    (project / "linked").symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for folder, path in (
        (project / "schemas", "schemas/tone.json"),
        (Path("../project/schemas"), "schemas/tone.json"),
        (tmp_path / "link/schemas", "schemas/tone.json"),
        (project / "linked", "linked/tone.json"),
        (Path(), f"{tmp_path}/elsewhere/tone.json"),
    ):
        library = load_library(folder, folder, project)
        assert [schema.path for schema in library.schemas] == [path]
        assert [example.path for example in library.examples] == [path]
        assert library.schema((folder / "tone.json").as_posix()) is library.schemas[0], "as configured, too"
        assert library.example((folder / "tone.json").as_posix()) is library.examples[0]


@pytest.mark.parametrize(
    "written", ["../lib/ex", "./../lib/ex", "a/../../lib/ex", "sch", "./sch", "a/../sch"]
)
@pytest.mark.parametrize("start", ["project", "elsewhere"], ids=["as in the file", "as in a variable"])
def test_a_document_is_found_by_the_folder_as_it_was_written(
    start: str, written: str, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("lib/ex", "project/sch", "elsewhere/sch"):
        write(f"{folder}/tone.json", TONE)
    for folder in ("project", "elsewhere"):
        (tmp_path / folder / "a").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    project = tmp_path / "project"
    configured = project / written if start == "project" else Path(written)
    library = load_library(configured, configured, project)
    for path in (f"{written}/tone.json", f"{Path(written)}/tone.json"):
        assert library.schema(path) is library.schemas[0]
        assert library.example(path) is library.examples[0]


def test_a_schema_is_found_by_name_by_alias_and_by_path(library: Library, tmp_path: Path) -> None:
    tone = library.schemas[1]
    for name in ("tone", "tone.schema.json", f"{tmp_path}/schemas/tone.schema.json"):
        assert library.schema(name) is tone
    assert library.schema("nested-synesthetic-asset") is library.schemas[0]
    for name in ("Tone", "tone ", "./tone", "schemas/tone", ""):
        assert library.schema(name) is None


def test_an_example_is_found_by_either_path(library: Library, tmp_path: Path) -> None:
    example = library.examples[1]
    assert library.example("tone.json") is example
    assert library.example(f"{tmp_path}/examples/tone.json") is example
    assert library.example("tone") is None


@pytest.mark.covers("004.order.listings")
def test_listings_are_ordered_by_name_version_and_path_and_by_component_and_path(
    write: Write, tmp_path: Path
) -> None:
    for name in ("b", "a", "a-b", "sub/a", "B"):
        write(f"schemas/{name}.schema.json", {"version": "1"})
        write(f"examples/{name}.x.json", {})
        write(f"examples/{name}.json", {})
    library = load_library(tmp_path / "schemas", tmp_path / "examples")
    assert [schema.name for schema in library.schemas] == ["B", "a", "a-b", "b", "sub/a"]
    assert [(one.component, one.path.partition("/examples/")[2]) for one in library.examples] == [
        ("B", "B.json"),
        ("B", "B.x.json"),
        ("a", "a.json"),
        ("a", "a.x.json"),
        ("a", "sub/a.json"),
        ("a", "sub/a.x.json"),
        ("a-b", "a-b.json"),
        ("a-b", "a-b.x.json"),
        ("b", "b.json"),
        ("b", "b.x.json"),
    ]


@pytest.mark.covers("004.schemas.unusable")
def test_files_that_cannot_be_used_are_named_with_the_reason_and_the_rest_is_served(
    write: Write, tmp_path: Path
) -> None:
    schemas = {
        "good": TONE,
        "text": b"{",
        "latin": b'{"title":"\xe9"}',
        "list": [],
        "boolean": True,
        "broken": {"type": "nonsense"},
        "dialect": {"$schema": "http://json-schema.org/draft-07/schema#"},
        "dangling": {"properties": {"a": {"$ref": "https://elsewhere.example/x.json"}}},
        "backtracking": {"pattern": "(?=a)"},
    }
    for name, schema in schemas.items():
        write(f"schemas/{name}.schema.json", schema)
    write("schemas/good.json", TONE)
    (tmp_path / "schemas/out.schema.json").symlink_to("/etc/hostname")
    library = load_library(tmp_path / "schemas", tmp_path / "missing")
    assert library.names == ["good"]
    said = {
        warning.partition(": ")[0].rpartition("/")[2]: warning.partition(": ")[2]
        for warning in library.warnings
    }
    expected = {
        "text.schema.json": "not JSON: the text is incomplete",
        "latin.schema.json": "not JSON: a string is not valid UTF-8; encode it as UTF-8",
        "list.schema.json": "must be an object",
        "boolean.schema.json": "must be an object",
        "broken.schema.json": "/type: ",
        "dialect.schema.json": "/$schema: must be https://json-schema.org/draft/2020-12/schema",
        "dangling.schema.json": "/properties/a/$ref: refers to a different document, https://elsewhere.example/",
        "backtracking.schema.json": "/pattern: not a pattern that can be matched in linear time",
        "out.schema.json": "a link that points outside of its folder",
        "good.json": "good.schema.json has the same name; rename one",
        "missing": "cannot be read: No such file or directory",
    }
    assert said.keys() == expected.keys()
    assert [name for name, words in expected.items() if not said[name].startswith(words)] == []


def test_two_schemas_with_one_id_are_both_served_and_said(write: Write, tmp_path: Path) -> None:
    write("schemas/a.schema.json", {"$id": "https://schemas.example/x", "type": "string"})
    write("schemas/b.schema.json", {"$id": "https://schemas.example/x", "type": "number"})
    library = load_library(tmp_path / "schemas", None)
    assert library.names == ["a", "b"]
    assert [warning.rpartition("/")[2] for warning in library.warnings] == [
        "b.schema.json: an earlier schema has the same $id; references resolve to that one"
    ]
    assert [schema.validator.allows(5) for schema in library.schemas] == [False, True]


@pytest.mark.covers("004.sources.empty")
def test_without_folders_there_is_nothing() -> None:
    assert load_library(None, None) == EMPTY
    assert EMPTY.schema("tone") is None
    assert EMPTY.example("tone.json") is None


@pytest.mark.covers("004.sources.once")
def test_what_changes_after_the_start_is_not_seen(library: Library, write: Write) -> None:
    write("schemas/later.schema.json", {})
    write("examples/later.json", {})
    write("examples/tone.json", {"pitch": 1})
    assert library.schema("later") is None
    assert library.example("later.json") is None
    example = library.example("tone.json")
    assert example is not None
    assert example.document == {"pitch": "high"}


def test_a_schema_is_kept_as_it_stands_in_its_file(library: Library) -> None:
    assert [schema.document for schema in library.schemas] == [ASSET, TONE]


def a_socket(path: Path, _: str) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def a_file(path: Path, content: str) -> None:
    made = {"random bytes": b"\x80\xff\x00", "": '{"a":1}'.encode("utf-16"), "mode 000": b"{}"}
    path.write_bytes(made[content] if content in made else content.encode())
    if content == "200MB sparse":
        os.truncate(path, 200_000_000)
    if content == "mode 000":
        path.chmod(0)


MAKE: dict[str, Callable[[Path, str], object]] = {
    "symlink": lambda path, target: path.symlink_to(target.removeprefix("-> ")),
    "hardlink": lambda path, target: path.hardlink_to(path.parent.parent / target.removeprefix("-> ")),
    "fifo": lambda path, _: os.mkfifo(path),
    "socket": a_socket,
    "dir": lambda path, _: path.mkdir(),
    "file": a_file,
}


def set_up(folder: Path) -> Path:
    """The folder that the cases run in, made from their own words."""
    for line in CASES["setup"]:
        kind, _, rest = line.partition(" ")
        name, _, content = rest.partition(" ")
        if kind == "mkdir":
            for one in rest.split():
                (folder / one).mkdir()
        elif kind == "chardev?":
            (folder / rest.rpartition(" ")[2]).symlink_to("/dev/zero")
        else:
            MAKE[kind](folder / name, content)
    return folder / CASES["root"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Library:
    root = set_up(tmp_path_factory.mktemp("paths"))
    return load_library(root, root)


@pytest.mark.covers("004.paths")
@pytest.mark.parametrize("row", CASES["cases"], ids=lambda row: ascii(row["path"])[:40])
def test_a_hostile_path_finds_nothing_and_an_honest_one_its_file(
    row: dict[str, Any], hostile: Library
) -> None:
    found = [hostile.example(row["path"]), hostile.schema(row["path"])]
    if row["expect"] == "deny":
        assert found == [None, None]
    elif row["expect"] == "allow":
        assert None not in found


def test_a_library_of_hostile_files_has_nothing_from_outside(hostile: Library) -> None:
    assert CANARY not in repr(hostile)
    assert {example.path.rpartition("/root/")[2] for example in hostile.examples} >= {"ok.json", "sub/b.json"}
    assert not [warning for warning in hostile.warnings if "root/" not in warning]


def test_an_asset_may_name_its_schema_by_a_path_everywhere(write: Write, tmp_path: Path) -> None:
    write("schemas/sub/tone.schema.json", {"required": ["pitch"]})
    asset = {"schema": "sub/tone.schema.json", "pitch": 1}
    write("examples/a.json", asset)
    library = load_library(tmp_path / "schemas", tmp_path / "examples")
    assert library.schema_for(asset, "a.json") == "sub/tone"
    assert library.examples[0].schema == "sub/tone"


def test_a_schema_that_is_called_as_an_alias_is_listed_and_never_checked_by(
    write: Write, tmp_path: Path
) -> None:
    write("schemas/synesthetic-asset.schema.json", {"version": "1"})
    write("schemas/nested-synesthetic-asset.schema.json", {"version": "9", "type": "null"})
    library = load_library(tmp_path / "schemas", None)
    assert [(schema.name, schema.version) for schema in library.schemas] == [
        ("nested-synesthetic-asset", "9"),
        ("synesthetic-asset", "1"),
    ]
    found, checked_by = library.named("nested-synesthetic-asset"), library.schema("nested-synesthetic-asset")
    assert (found and found.version, checked_by and checked_by.version) == ("9", "1")
    get = {tool.name: tool for tool in asset_tools(library, None, 1)}["get_schema"].function
    assert get({"name": "nested-synesthetic-asset"})["version"] == "9"


def test_a_folder_or_name_that_cannot_be_read_is_warned_of(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("schemas/sub/tone.schema.json", {})
    write(os.fsdecode(b"schemas/\xff.schema.json"), {})
    look = os.scandir

    def scandir(path: Any) -> Any:
        if os.fspath(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", path)
        return look(path)

    monkeypatch.setattr(os, "scandir", scandir)
    library = load_library(tmp_path / "schemas", None)
    assert library.schemas == ()
    assert list(library.warnings) == [
        f"{tmp_path}/schemas/\\udcff.schema.json: its name is not UTF-8",
        f"{tmp_path}/schemas/sub: the folder cannot be read: Permission denied",
    ]


# Names by files, and which schema an asset is meant for.


KNOWN = ["tone", "control-bundle", "synesthetic-asset", "nested/deep"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("tone.schema.json", "tone"),
        ("tone.json", "tone"),
        ("sub/tone.schema.json", "sub/tone"),
        ("a.b.schema.json", "a.b"),
        ("tone", "tone"),
    ],
)
def test_a_schemas_name_is_its_files_without_the_suffix(path: str, name: str) -> None:
    assert schema_name(path) == name


@pytest.mark.parametrize(
    ("path", "component"), [("Tone_Example.json", "Tone_Example"), ("sub/asset.valid.json", "asset")]
)
def test_a_component_is_the_files_name_up_to_the_first_dot(path: str, component: str) -> None:
    assert component_of(path) == component


@pytest.mark.parametrize(
    ("document", "version"),
    [
        ({"version": "0.7.0"}, "0.7.0"),
        ({"version": 2}, "2"),
        ({"version": True}, ""),
        ({"version": ["1"]}, ""),
        ({"version": "1", "$id": "https://x/2.0/a.json"}, "1"),
        ({"$id": "https://schemas.example/0.7.3/tone.schema.json"}, "0.7.3"),
        ({"$id": "https://schemas.example/v1.2/tone-3.4.schema.json"}, "1.2"),
        ({"$id": "https://10.20.30.40/tone.schema.json"}, ""),
        ({"$id": 5}, ""),
        ({}, ""),
    ],
)
def test_a_version_comes_from_the_schema_itself(document: dict[str, Any], version: str) -> None:
    assert version_of(document) == version


@pytest.mark.covers("004.examples.schema")
@pytest.mark.parametrize(
    ("asset", "path", "name"),
    [
        ({"schema": "tone", "$schemaRef": "control-bundle"}, "x.json", "tone"),
        ({"schema": "https://schemas.example/tone.schema.json#/x"}, "x.json", "tone"),
        ({"schema": "nested/deep"}, "x.json", "nested/deep"),
        ({"schema": "unheard-of"}, "tone.json", "unheard-of"),
        ({"schema": 5, "$schemaRef": "jsonschema/tone.schema.json"}, "x.json", "tone"),
        ({"schema": "", "$schemaRef": ""}, "tone.json", "tone"),
        ({"$schemaRef": "tone.json?x=1"}, "x.json", "tone"),
        ({}, "tone.json", "tone"),
        ({}, "sub/tone.valid.json", "tone"),
        ({}, "Tone_Example.json", "tone"),
        ({}, "Control-Bundle_Example.json", "control-bundle"),
        ({}, "SynestheticAsset_Example1.json", "synesthetic-asset"),
        ({}, "nested/deep.json", "nested/deep"),
        ({}, "other.valid.json", "other"),
        ([1], "tone.json", "tone"),
    ],
)
def test_an_asset_names_its_schema_by_a_member_or_by_its_file(asset: Any, path: str, name: str) -> None:
    assert named_schema(asset, path, KNOWN) == name
