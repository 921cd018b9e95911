"""The tools that settings describe: built-in, asset tools, Python functions, HTTP APIs, MCP servers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from portbook.assets.library_folder_paths import find_folders, listed_folder
from portbook.settings import BadSettings, ProblemList, Settings
from portbook.text.named_tuple import NamedTuple
from portbook.tools.catalog import Catalog
from portbook.tools.contract_registry import BadBundle, Bundle, SchemaRegistry, shipped_folder
from portbook.tools.mistake_place import shown_file
from portbook.tools.spec import BadTool, ToolSpec
from portbook.tools.toolset import Toolset
from portbook.tools.toolset_loader import MissingToolset, ToolsetLoader

if TYPE_CHECKING:
    from portbook.apis.gateway import Gateway
    from portbook.apis.left_out_operations import LeftOutOperation
    from portbook.assets.library import Library
    from portbook.assets.populate_backend import Backend
    from portbook.upstreams.mcp_table import DeclaredUpstream

__all__ = ["Collected", "asset_library", "collect_servers", "collect_tools"]


class Collected(NamedTuple):
    """What is served, and warnings."""

    catalog: Catalog
    gateways: tuple[Gateway, ...]
    warnings: tuple[str, ...]
    toolsets: tuple[Toolset, ...] = ()
    left_out: tuple[LeftOutOperation, ...] = ()
    """The operations of HTTP APIs that are not served."""
    servers: tuple[DeclaredUpstream, ...] = ()
    """The MCP servers; what they offer is not known before they are asked."""


def collect_tools(
    settings: Settings,
    registry: SchemaRegistry | None = None,
    *,
    given: Sequence[Toolset] = (),
    environ: Mapping[str, str] = os.environ,
    redact: Callable[[str], str] = str,
) -> Collected:
    """Return the tools that `settings` describe and those `given`, without an executor.

    The `registry` then knows their contracts. `redact` takes secrets out of what toolsets raise.

    Raises `BadTool`, `BadBundle` or `BadSettings` for what cannot be served; every source is read first, so
    that all problems are told at once.
    """
    registry = registry or SchemaRegistry(settings.schema_root)
    problems = ProblemList(BadTool, BadBundle, BadSettings)
    bundles: dict[str, Bundle] = {}
    with problems:
        bundles.update(registry.bundles())
    specs: list[ToolSpec] = []
    warnings: list[str] = []
    gateways: list[Gateway] = []
    left_out: tuple[LeftOutOperation, ...] = ()
    library = asset_library(settings)
    if library is not None:
        from portbook.assets.asset_tools_and_resources import asset_resources, asset_tools

        warnings.extend(_placed(settings, each) for each in library.warnings)
        secrets = "give" if settings.asset_redaction == "off" else "refuse"
        backend: Backend | None = None
        with problems:
            backend = _backend(settings)
        tools = asset_tools(library, backend, settings.asset_max_batch, secrets)
        if backend is not None:
            gateways.append(_gateway_of(backend))
            tools = [_composed(spec) for spec in tools]
        specs.extend(_under_contract(tools, bundles))
        specs.extend(asset_resources(library, secrets))
    sources = [*((each, None) for each in given), *_named_toolsets(settings, problems, redact)]
    for toolset, source in sources:
        with problems:
            declared_specs = toolset.specs()
            specs.extend(_under_contract(declared_specs, bundles))
            if source is not None and not declared_specs:
                warnings.append(_nothing_in(source))
    toolsets = [toolset for toolset, _ in sources]
    for name, table in settings.http_tables.items():
        from portbook.apis.http_table import read_http  # late, both: only where there is an API to call
        from portbook.settings.bad_settings import read_whole

        with problems:
            declared = read_whole(
                {name: table},
                lambda tables, complain: read_http(tables, environ, settings.folder, complain),
                settings.complain,
            )
            gateways.extend(declared.gateways)
            warnings.extend(declared.warnings)
            left_out = (*left_out, *declared.left_out)
            specs.extend(_under_contract(declared.specs, bundles))
    servers: tuple[DeclaredUpstream, ...] = ()
    with problems:
        servers = collect_servers(settings)
    problems.raise_all()
    is_alone = not (toolsets or settings.http_tables or settings.mcp_tables or library)
    if _is_docs_search_served(settings, is_alone=is_alone):
        specs.append(_docs_search(settings, bundles, warnings))
    served = {spec.name for spec in specs if spec.kind == "tool"}
    unused = sorted(bundles.keys() - served - {"docs.search"})
    warnings.extend(
        f"{bundles[name].path}: no tool {name!r} is served; the contract is not used" for name in unused
    )
    registry.add(specs)
    # A server may offer each of these, and clients are told before it is known.
    catalog = Catalog(specs, settings.tool_names, ("resource", "prompt", "completion") if servers else ())
    return Collected(catalog, tuple(gateways), tuple(warnings), tuple(toolsets), left_out, servers)


def collect_servers(settings: Settings) -> tuple[DeclaredUpstream, ...]:
    """Return the MCP servers that `settings` declare.

    Raises `BadSettings` for what cannot be used.
    """
    if not settings.mcp_tables:
        return ()
    from portbook.settings.bad_settings import read_whole  # late, both: only where there is a server
    from portbook.upstreams.mcp_table import read_mcp

    return read_whole(
        settings.mcp_tables,
        lambda tables, complain: read_mcp(tables, settings.folder, complain, settings.position_of),
        settings.complain,
    )


def _nothing_in(source: str) -> str:
    place = f"{shown_file(source)}:1:1" if source.endswith(".py") else source
    return f"{place}: its toolset has nothing in it; declare a tool with @toolset.tool"


def _named_toolsets(
    settings: Settings, problems: ProblemList, redact: Callable[[str], str]
) -> list[tuple[Toolset, str]]:
    """Return the toolsets of the settings and of the command line, each with the file or module it is from.

    What is not there is told at its key.
    """
    places = [("python", "toolsets", number) for number in range(len(settings.toolsets))]
    found: list[tuple[Toolset, str]] = []
    loader = ToolsetLoader(redact)
    for source, place in zip_longest((*settings.toolsets, *settings.more_toolsets), places):
        with problems:
            try:
                found.extend((toolset, source) for toolset in loader.load(source))
            except MissingToolset as error:
                if place is None:
                    raise
                raise MissingToolset(str(settings.complain(place, f"cannot be loaded: {error}"))) from None
    return found


def asset_library(settings: Settings) -> Library | None:
    """Return the schemas and examples that `settings` name, or None if the asset tools are not served."""
    schemas, examples = find_folders(settings.asset_schemas, settings.asset_examples)
    is_wanted = settings.assets_enabled
    if is_wanted is None:
        is_wanted = schemas is not None or examples is not None
    if not is_wanted:
        return None
    from portbook.assets.library import load_library  # late: only where assets are served

    return load_library(schemas, examples, settings.folder)


def _placed(settings: Settings, warning: str) -> str:
    """Return a warning of the library, with the place of the setting if it is about the folder itself."""
    for key, folder in (("schemas", settings.asset_schemas), ("examples", settings.asset_examples)):
        if folder is not None and warning.startswith(
            f"{listed_folder(folder, settings.folder).as_posix()}: "
        ):
            return f"{settings.position_of('assets', key)}: assets.{key}: {warning}"
    return warning


def _backend(settings: Settings) -> Backend | None:
    if settings.backend_url is None:
        return None
    from portbook.assets.populate_backend import GATEWAY, BadBackend, backend_at

    if GATEWAY in settings.http_tables:
        raise settings.complain(("http", GATEWAY), "is the name of the backend; choose a different one")
    try:
        return backend_at(settings.backend_url, settings.backend_path)
    except BadBackend as error:
        raise settings.complain(("assets", "backend_url"), f"cannot be used: {error}") from None


def _gateway_of(backend: Backend) -> Gateway:
    from portbook.apis.gateway import Gateway
    from portbook.assets.populate_backend import GATEWAY

    headers = () if backend.authorization is None else (("Authorization", backend.authorization),)
    return Gateway(GATEWAY, backend.base_url, headers, backend.secrets, retries=0)


def _composed(spec: ToolSpec) -> ToolSpec:
    """Return a tool, refused before anyone is asked to approve a request that cannot be composed."""
    if spec.operation is None:
        return spec
    from portbook.apis.arguments_put_into_request import Composer

    return replace(spec, refuse=Composer(spec.operation).refuse)


def _is_docs_search_served(settings: Settings, *, is_alone: bool) -> bool:
    """Return whether `docs.search` is served; `is_alone` where the settings name nothing else to serve.

    Unless the settings say, a folder of the operator's own is searched, and Portbook's own documentation only
    if there would be nothing else to call.
    """
    if settings.docs_enabled is not None:
        return settings.docs_enabled
    return is_alone or settings.docs_folder is not None


def _docs_search(settings: Settings, bundles: dict[str, Bundle], warnings: list[str]) -> ToolSpec:
    from portbook.builtin.docs_search import docs_search_tool

    bundle = bundles.get("docs.search") or SchemaRegistry().bundles()["docs.search"]
    folder = settings.docs_folder or shipped_folder("docs")
    if not folder.is_dir():
        place = "" if settings.docs_folder is None else f"{settings.opening('docs', 'folder')}docs.folder: "
        warnings.append(f"{place}{folder}: no such folder; docs.search finds nothing")
    return docs_search_tool(bundle, folder)


def _under_contract(specs: Iterable[ToolSpec], bundles: dict[str, Bundle]) -> list[ToolSpec]:
    """Return the tools, each with the contract of its bundle, if it has one."""
    return [
        _replaced(spec, bundles[spec.name]) if spec.kind == "tool" and spec.name in bundles else spec
        for spec in specs
    ]


def _replaced(spec: ToolSpec, bundle: Bundle) -> ToolSpec:
    return replace(
        spec,
        input_schema=bundle.input,
        output_schema=bundle.output,
        are_schemas_checked=False,
        description=bundle.description or spec.description,
    )
