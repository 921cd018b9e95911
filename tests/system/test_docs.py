"""The docs say what the code does: generated pages are fresh, nothing is undocumented, no link is dead."""

from __future__ import annotations

import builtins
import configparser
import importlib.util
import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from types import GenericAlias, ModuleType, UnionType
from typing import Any, cast

import click
import pytest

import portbook
import portbook.testing
from portbook.cli.main import cli
from portbook.errors import REASONS, CanonicalError, Failed, Finding, Reason
from portbook.ids import RandomIds
from portbook.model import Arrival, Call, CallerContext
from portbook.settings import CONFIG_NAME, SETTINGS, load_settings
from portbook.stages.recorder import both_views
from portbook.stages.state import Trail
from portbook.tools.asset_tool_schemas import INPUTS, OUTPUTS
from portbook.tools.catalog import Catalog
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.upstream_entries import UpstreamEntry

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md"), *ROOT.glob("examples/*/*.md")]
)


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "portbook_docs_generate", ROOT / "scripts" / "generate_docs.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATED: dict[Path, str] = _generator().pages()


def read(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# -- generated pages


@pytest.mark.parametrize("page", GENERATED, ids=name_of)
def test_a_generated_page_is_what_the_code_says_now(page: Path) -> None:
    assert page.read_text("utf-8") == GENERATED[page], "stale: run scripts/generate-docs"


@pytest.mark.parametrize("page", GENERATED, ids=name_of)
def test_a_generated_page_says_how_to_make_it_again(page: Path) -> None:
    assert "scripts/generate-docs" in page.read_text("utf-8").partition("\n")[0]


# -- nothing is undocumented


def test_every_command_and_option_is_documented() -> None:
    page = read("cli.md")
    for context in _commands(click.Context(cli, info_name="portbook")):
        _, found, section = page.partition(f"\n## {context.command_path}\n")
        assert found, context.command_path
        section = section.partition("\n## ")[0]
        for parameter in context.command.params:
            written = (
                parameter.opts if isinstance(parameter, click.Option) else [parameter.make_metavar(context)]
            )
            assert all(form in section for form in written), (context.command_path, written)


def _commands(context: click.Context) -> Iterator[click.Context]:
    """Yield the contexts of all commands below, at any depth."""
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            below = click.Context(command, info_name=name, parent=context)
            yield below
            yield from _commands(below)


def test_every_setting_and_variable_is_documented() -> None:
    page = read("settings.md")
    for setting in SETTINGS:
        assert f"\n### {setting.key}\n\n{setting.meaning}" in page
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    variables = set(re.findall(r"\bPORTBOOK_[A-Z0-9_]+\b", sources))
    assert variables
    assert {name for name in variables if f"`{name}`" not in page} == set()


def test_the_settings_file_that_is_shown_holds_the_defaults(tmp_path: Path) -> None:
    [shown] = re.findall(r"^```toml\n(.*?)^```$", read("settings.md"), re.MULTILINE | re.DOTALL)
    assert set(tomllib.loads(shown)) == {
        setting.key.partition(".")[0]
        for setting in SETTINGS
        if "." in setting.key or (setting.default is not None and setting.kind != "table")
    }
    config = tmp_path / CONFIG_NAME
    config.write_text(shown, "utf-8")
    loaded = load_settings(config, {}, {}, tmp_path)
    for setting in SETTINGS:
        name, value = setting.key.rpartition(".")[2], attrgetter(setting.field)(loaded)
        is_relative = setting.kind == "path" and setting.default is not None
        assert value == (tmp_path / setting.default if is_relative else setting.default)
        written = rf"^(# )?({name} = |\[\[{re.escape(setting.key)}\]\]|\[{re.escape(setting.key)}\.)"
        assert re.search(written, shown, re.MULTILINE), name


def _own_functions(made: type) -> Iterator[tuple[str, Any]]:
    """Yield the functions that a class has for its users, those it inherits too."""
    return ((name, each) for name, each in inspect.getmembers(made, inspect.isfunction) if name[0] != "_")


@pytest.mark.parametrize("module", [portbook, portbook.testing], ids=lambda module: module.__name__)
def test_every_name_of_the_package_is_documented(module: ModuleType) -> None:
    page = read("python.md")
    for name in set(module.__all__) - {"__version__"}:
        made = getattr(module, name)
        _, found, section = page.partition(f"\n### {name}\n")
        assert found, name
        section = section.partition("\n### ")[0]
        if isinstance(made, UnionType | GenericAlias):  # an alias: Python keeps no words of its own for it
            assert re.search(rf"```python\n{name} = .+\n```\n\n\w", section)
            continue
        assert " ".join(inspect.cleandoc(made.__doc__).split("\n\n")[0].split()) in section


def test_every_exception_that_the_reference_names_can_be_imported() -> None:
    sentences = re.findall(r"Raises (`[A-Z].*)", read("python.md"))
    named = {name for sentence in sentences for name in re.findall(r"`([A-Z]\w+)`", sentence)}
    public = {*vars(builtins), *portbook.__all__, *portbook.testing.__all__}
    assert len(named) > 10
    assert named - public == set()


@pytest.mark.parametrize(
    "made", [portbook.Toolset, portbook.Context, portbook.testing.TestClient], ids=lambda made: made.__name__
)
def test_every_parameter_of_what_authors_call_is_explained(made: type) -> None:
    page = read("python.md")
    for name, function in _own_functions(made):
        _, found, section = page.partition(f"\n### {made.__name__}.{name}\n")
        assert found, name
        words = section.partition("\n### ")[0].rpartition("```\n")[2]
        for parameter in set(inspect.signature(function).parameters) - {"self", "function"}:
            assert re.search(rf"`{parameter}\b", words), (name, parameter)


def test_every_reason_and_code_is_documented() -> None:
    page = read("reasons.md")
    for reason, row in REASONS.items():
        assert f"\n### {reason}\n\n{row.sentence}" in page
    assert [code for code in CanonicalError.codes() if f"| `{code}` |" not in page] == []


def _properties(schema: Any) -> Iterator[str]:
    """Yield the names of the properties of a schema, at any depth."""
    if isinstance(schema, dict):
        for keyword, value in schema.items():
            if keyword == "properties":
                yield from value
            yield from _properties(value)


def test_every_property_of_the_contract_schemas_is_documented() -> None:
    pages = {
        "envelope.schema.json": "envelope.md",
        "execute.schema.json": "rest.md",
        "tool_io.schema.json": "contract-schemas.md",
    }
    for path in sorted((ROOT / "codex/specs/schemas").glob("*.json")):
        page = pages.get(path.name, "result-envelope.md")
        document = json.loads(path.read_text("utf-8"))
        names = set(_properties(document))
        assert names
        assert {name for name in names if not re.search(rf"`(\w+\.)*{re.escape(name)}`", read(page))} == set()


@pytest.mark.covers("004.exit.docs")
def test_every_asset_tool_is_documented_with_its_arguments_and_results() -> None:
    page = read("assets.md")
    rows = {cells[1].strip("` "): line for line in page.splitlines() if len(cells := line.split("|")) == 5}
    assert rows.keys() >= INPUTS.keys()
    for tool, row in ((tool, rows[tool]) for tool in INPUTS):
        arguments = [*cast("dict[str, Any]", INPUTS[tool]["properties"])]
        results = [*cast("dict[str, Any]", OUTPUTS[tool]["properties"])]
        assert [name for name in arguments if f"`{name}`" not in row] == []
        # What a failure has beside its reason stands in a table of its own.
        assert [name for name in results if f"`{name}`" not in row and f"`{name}`" not in page] == []


def _keys(value: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield prefix + key
            yield from _keys(below, f"{prefix}{key}.")
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item, prefix.removesuffix(".") + "[].")


def test_every_field_of_a_record_is_documented_and_no_other() -> None:
    call = Call(Arrival("stdio", "stdio"), None, None, {}, 0, CallerContext(), None, b"")
    ending = Failed(Reason.BAD_RESULT, (Finding("/a", "b", "c", "/d"),))
    entry = UpstreamEntry("a", "a", {}, is_confined=True)
    spec = ToolSpec("a", "", {}, True, Effect.READ, upstream=entry, is_result_unchecked=True)
    ids, trail = RandomIds().name(b""), Trail(tool=Catalog([spec]).find("a"))
    envelope, _ = both_views(call, ending, ids, trail, ts=b"", duration_us=0, deterministic=False)
    record = json.loads(envelope)
    documented = re.findall(r"^\| `([^`]+)` \|", read("records.md"), re.MULTILINE)
    assert sorted(documented) == sorted(_keys(record))


# -- the architecture page


def _architecture() -> str:
    return (DOCS / "explanation/architecture.md").read_text("utf-8")


def test_the_package_tree_is_the_one_that_is_there() -> None:
    [shown] = re.findall(r"^```\nsrc/portbook/\n(.*?)^```$", _architecture(), re.MULTILINE | re.DOTALL)
    listed: list[str] = []
    folders: list[str] = []
    for line in shown.splitlines():
        indent, name = re.match(r"( +)(\S+)", line).groups()  # pyright: ignore[reportOptionalMemberAccess]
        del folders[len(indent) // 2 - 1 :]
        if name.endswith("/"):
            folders.append(name)
        else:
            listed.append("".join(folders) + name)
    package = ROOT / "src/portbook"
    unlisted = {"__init__.py", "__main__.py"}
    there = [
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if path.name not in unlisted
    ]
    assert sorted(listed) == sorted(there)


def test_the_layers_are_those_that_the_linter_checks() -> None:
    [shown] = re.findall(r"^```layers\n(.*?)^```$", _architecture(), re.MULTILINE | re.DOTALL)
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", "utf-8")
    layers = contracts["importlinter:contract:rooms"]["layers"]
    assert shown.split("\n") == [*layers.split("\n")[1:], ""]


@pytest.mark.covers("001.library")
@pytest.mark.covers("004.dependencies")
def test_every_runtime_dependency_has_its_reason() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    names = {re.split(r"[<>=]", requirement)[0] for requirement in config["project"]["dependencies"]}
    reasons = (DOCS / "adr/0002-dependencies.md").read_text("utf-8")
    assert set(re.findall(r"^\| `([\w-]+)` \|", reasons, re.MULTILINE)) == names


# -- links


_FENCE = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def _links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield the target and the fragment of every relative link."""
    prose = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page.read_text("utf-8")))
    for link in _LINK.findall(prose):
        if not re.match(r"[a-z]+:", link):
            target, _, fragment = link.partition("#")
            yield (page.parent / target).resolve() if target else page, fragment


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#{1,6} (.+)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_link_of_a_page_is_dead(page: Path) -> None:
    dead = [
        f"{target}#{fragment}"
        for target, fragment in _links(page)
        if not target.exists() or (fragment and fragment not in _anchors(target))
    ]
    assert dead == []


def test_every_page_can_be_reached_from_the_map() -> None:
    start = DOCS / "index.md"
    seen: set[Path] = set()
    waiting = [start.resolve()]
    while waiting:
        page = waiting.pop()
        if page not in seen and page.suffix == ".md" and page.is_file():
            seen.add(page)
            waiting.extend(target for target, _ in _links(page))
    assert sorted(name_of(page) for page in DOCS.rglob("*.md") if page.resolve() not in seen) == []


def test_a_page_starts_with_its_title() -> None:
    untitled = [
        name_of(page) for page in PAGES if not re.match(r"(<!-- .* -->\n\n)?# \S", page.read_text("utf-8"))
    ]
    assert untitled == []
