"""Settings to a running boundary: the one place that picks parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from portbook.assets.library import Library, find_folders, load_library
from portbook.assets.populate import Backend, BadBackend, backend_at
from portbook.assets.posting import post
from portbook.assets.toolset import ASSET_TOOLS, asset_tools
from portbook.boundary import Boundary
from portbook.callers import Callers
from portbook.clock import Clock, ContentIds, Ids, RandomIds, SystemClock
from portbook.dialects.bare import Bare
from portbook.dialects.envelope import Envelope
from portbook.dialects.official import Official
from portbook.executors.python import PythonExecutor
from portbook.fetching import CannotFetch, fetch, without_secrets
from portbook.pipeline import Pipeline
from portbook.ports import Sink
from portbook.protocol.conform import SchemaValidator
from portbook.schema.override import MAX_BYTES, BadOverride, check_override
from portbook.schema.store import SchemaStore
from portbook.settings import BadSettings, Settings
from portbook.sinks import ENVELOPE_STREAM, JsonlSink
from portbook.tools.catalog import Catalog
from portbook.tools.loading import load_toolsets
from portbook.tools.registry import Bundle, SchemaRegistry
from portbook.tools.shipped import shipped_folder
from portbook.tools.spec import ToolSpec

__all__ = [
    "FETCH_S",
    "Assembled",
    "assemble",
    "asset_library",
    "collect_tools",
    "official_schemas",
    "record_files",
]

# An override is fetched before anything is served: long enough for a slow host, short enough to wait for.
FETCH_S: Final = 10.0


class _ClosableSink(Sink, Protocol):
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Assembled:
    """A boundary ready to answer, and what has to be closed after it."""

    boundary: Boundary
    catalog: Catalog
    sink: _ClosableSink
    executor: PythonExecutor
    validator: SchemaValidator
    needs_key: bool
    warnings: tuple[str, ...]

    def close(self) -> None:
        """Close what was opened."""
        self.sink.close()
        self.validator.shutdown()


def assemble(
    settings: Settings,
    *,
    is_exposed: bool,
    sink: _ClosableSink | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> Assembled:
    """Return the boundary that `settings` describe; `is_exposed` where others than this machine can reach it.

    Raises `BadTool`, `BadBundle` or `OSError` for what cannot be served, read or written.
    """
    clock = clock or SystemClock()
    ids = ids or (ContentIds() if settings.deterministic_ids else RandomIds())
    registry = SchemaRegistry(settings.schema_root)
    catalog, warnings = _catalog(settings, registry)
    required = is_exposed if settings.keys_required is None else settings.keys_required
    if required and not settings.allowed_keys:
        warnings.append("a key is required and none is allowed: add [[keys.allow]] to portbook.toml")
    sink = sink or record_files(settings, clock)
    executor = PythonExecutor(timeout_ms=settings.timeout_ms, workers=settings.workers)
    pipeline = Pipeline(
        catalog=catalog,
        callers=Callers(settings.allowed_keys, required=required),
        executor=executor,
        sink=sink,
        clock=clock,
        ids=ids,
        warn=warn,
    )
    schemas, override_warnings = official_schemas(settings)
    warnings.extend(override_warnings)
    validator = SchemaValidator(schemas)
    validator.initialize()
    official = Official(
        catalog,
        validator,
        incoming=settings.incoming_validation,
        outgoing=settings.outgoing_validation,
        warn=warn,
    )
    boundary = Boundary(pipeline, Envelope(registry.load_envelope()), official, Bare(ASSET_TOOLS))
    return Assembled(boundary, catalog, sink, executor, validator, required, tuple(warnings))


def record_files(settings: Settings, clock: Clock) -> JsonlSink:
    """Return where this run's records go by `settings`.

    Raises `OSError` where the folder cannot be written.
    """
    return JsonlSink(
        settings.log_dir,
        ENVELOPE_STREAM,
        started=clock.now(),
        run=RandomIds().name(b"").request[:8],
        keep=settings.keep_runs,
    )


def collect_tools(settings: Settings) -> Catalog:
    """Return the tools that `settings` describe, without anything to run them.

    Raises `BadTool` or `BadBundle` for what cannot be served.
    """
    return _catalog(settings, SchemaRegistry(settings.schema_root))[0]


def official_schemas(settings: Settings) -> tuple[SchemaStore, list[str]]:
    """Return the official schemas in force, and what to warn of: an override that cannot be used is not.

    Raises `BrokenSchema` where an embedded one is missing or damaged.
    """
    embedded = SchemaStore()
    embedded.verify()
    uri, revision = settings.schema_override_uri, settings.schema_override_revision
    if uri is None:
        return embedded, []
    origin = without_secrets(uri)
    try:
        data = fetch(uri, limit=MAX_BYTES, timeout_s=FETCH_S)
        override = check_override(data, revision, settings.schema_override_sha256, origin=origin)
    except CannotFetch as error:
        reason = str(error)
    except BadOverride as error:
        reason = f"{origin}: {error}"
    else:
        return SchemaStore(override), []
    return embedded, [f"schema override not used, the embedded schemas are: {reason}"]


def _catalog(settings: Settings, registry: SchemaRegistry) -> tuple[Catalog, list[str]]:
    bundles = dict(registry.bundles())
    specs: list[ToolSpec] = []
    warnings: list[str] = []
    if settings.docs_enabled:
        from portbook.builtin.docs_search import docs_search_tool

        bundle = bundles.get("docs.search") or SchemaRegistry().bundles()["docs.search"]
        folder = settings.docs_folder or shipped_folder("docs")
        if not folder.is_dir():
            warnings.append(f"{folder}: no such folder; docs.search will find nothing")
        specs.append(docs_search_tool(bundle, folder))
    library = asset_library(settings)
    if library is not None:
        warnings.extend(library.warnings)
        tools = asset_tools(library, _backend(settings), settings.asset_max_batch)
        specs.extend(_under_contract(tools, bundles))
    for source in settings.toolsets:
        for toolset in load_toolsets(source):
            specs.extend(_under_contract(toolset.specs(), bundles))
    served = {spec.name for spec in specs}
    unused = sorted(bundles.keys() - served - {"docs.search"})
    warnings.extend(
        f"{bundles[name].path}: no tool {name!r} is served; its contract is unused" for name in unused
    )
    return Catalog(specs), warnings


def asset_library(settings: Settings) -> Library | None:
    """Return the schemas and examples that `settings` name, or None where the asset tools are not served."""
    schemas, examples = find_folders(settings.asset_schemas, settings.asset_examples)
    is_wanted = settings.assets_enabled
    if is_wanted is None:
        is_wanted = schemas is not None or examples is not None
    return load_library(schemas, examples) if is_wanted else None


def _backend(settings: Settings) -> Backend | None:
    if settings.backend_url is None:
        return None
    try:
        return backend_at(settings.backend_url, settings.backend_path, post)
    except BadBackend as error:
        raise BadSettings(f"assets.backend_url: {error}") from None


def _under_contract(specs: Iterable[ToolSpec], bundles: dict[str, Bundle]) -> list[ToolSpec]:
    """Return the tools, each under the contract that a bundle names for it where there is one."""
    return [_replaced(spec, bundles[spec.name]) if spec.name in bundles else spec for spec in specs]


def _replaced(spec: ToolSpec, bundle: Bundle) -> ToolSpec:
    return replace(
        spec,
        input_schema=bundle.input,
        output_schema=bundle.output,
        description=bundle.description or spec.description,
    )
