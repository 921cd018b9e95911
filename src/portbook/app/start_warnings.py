"""What an operator is warned of at start: likely mistakes in the settings and in toolsets."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from portbook.globs import is_pattern, matches
from portbook.model import JSONObject
from portbook.policy import Policy
from portbook.redaction.known_secrets import LEAST_LENGTH
from portbook.settings import Settings
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.tools.catalog import Catalog
from portbook.tools.mistake_place import declared_at
from portbook.tools.spec import ToolSpec

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["OPERATOR_KEY", "blocked_by", "doubts_of", "policy_doubts", "problem_of_store", "unknown_servers"]

# Files and folders that settings name and that cannot be used, found before a call needs them.


def file_doubts(settings: Settings, store: StorePort) -> Iterator[str]:
    """Yield what cannot be used, each with the place of its setting and what comes of it."""
    if (problem := problem_of_store(store)) is not None:
        key = "path" if settings.store_url is None else "url"
        yield f"{settings.opening('store', key)}store.{key}: {problem}; until then, no call is approved"
    if settings.schema_root is not None and not settings.schema_root.is_dir():
        place = settings.position_of("schemas", "root")
        yield f"{place}: schemas.root is not a folder; the contracts of Portbook itself are used"
    for name, table in settings.http_tables.items():
        files = table.get("files")
        if isinstance(files, str) and not (settings.folder / files).is_dir():
            place = settings.position_of("http", name, "files")
            yield f"{place}: http.{name}.files is not a folder; calls that name a file are refused"


def problem_of_store(store: StorePort) -> str | None:
    """Return why a store that is there cannot be read; None where it can, or where there is none yet."""
    try:
        store.read(lambda _: None, None)
    except StoreError as error:
        return str(error)
    return None


def blocked_by(folder: Path) -> Path | None:
    """Return what keeps files from being written below `folder`: the first that exists on the way to it."""
    whole = Path.cwd() / folder
    existing = next(each for each in (whole, *whole.parents) if each.exists())
    return None if existing.is_dir() and os.access(existing, os.W_OK) else existing


# What a policy says in vain: rules, keys and destinations that fit nothing that is served.


def policy_doubts(
    settings: Settings, policy: Policy, specs: Sequence[ToolSpec], unknown: Collection[str] = ()
) -> list[str]:
    """Return what has no effect with these tools, each with file and line.

    `unknown` are the MCP servers that may have further tools.
    """
    return [
        *_doubts_of_rules(settings, policy, specs, unknown),
        *_doubts_of_keys(settings, specs, unknown),
        *_doubts_of_gateways(settings, policy, specs),
    ]


def _doubts_of_rules(
    settings: Settings, policy: Policy, specs: Sequence[ToolSpec], unknown: Collection[str]
) -> Iterator[str]:
    for number, rule in enumerate(policy.rules):
        from portbook.policy.rules_without_effect import doubts_of_rule  # late: many settings have no rules

        if any(_may_be_of(pattern, unknown) for pattern in rule.tools):
            continue
        names_tools = "tools" in settings.policy_rules[number]
        for path, sentence in doubts_of_rule(rule, specs, names_tools=names_tools):
            place = settings.position_of("policy", "rules", number, *path)
            yield f"{place}: rule {rule.name!r} {sentence}"


def _doubts_of_keys(settings: Settings, specs: Sequence[ToolSpec], unknown: Collection[str]) -> Iterator[str]:
    known = sorted({spec.name for spec in specs})
    for number, key in enumerate(settings.allowed_keys):
        for pattern in key.tools:
            is_known = pattern == "*" or any(matches((pattern,), name) for name in known)
            if not is_known and not _may_be_of(pattern, unknown):
                place = settings.position_of("keys", "allow", number, "tools")
                from portbook.policy.rules_without_effect import matches_nothing  # late: only for a mistake

                yield f"{place}: key {key.name!r} names {pattern!r}, which {matches_nothing(pattern, known)}"


def _may_be_of(pattern: str, servers: Collection[str]) -> bool:
    """Return whether a pattern could match a tool of one of these servers."""
    start = re.split(r"[*?]", pattern, maxsplit=1)[0]
    is_open = is_pattern(pattern)
    return any(
        start.startswith(f"{alias}.") or (is_open and f"{alias}.".startswith(start)) for alias in servers
    )


def _doubts_of_gateways(settings: Settings, policy: Policy, specs: Sequence[ToolSpec]) -> Iterator[str]:
    """Yield the gateways whose every call the limits deny."""
    operations = [spec.operation for spec in specs if spec.operation is not None]
    for name in sorted({operation.gateway for operation in operations}):
        own = [operation for operation in operations if operation.gateway == name]
        # A gateway's name has no dots; the backend of assets has the key of its address instead.
        is_backend = "." in name
        gateway = name if is_backend else f"http.{name}"
        declared = settings.position_of(*(name.split(".") if is_backend else ("http", name, "base_url")))
        from portbook.policy.rules_without_effect import doubts_of_gateway  # late: many have no gateway

        yield from doubts_of_gateway(
            policy, gateway, own, declared, lambda key: settings.position_of("policy", key)
        )


def doubts_of(
    settings: Settings, policy: Policy, catalog: Catalog, environ: Mapping[str, str], store: StorePort
) -> list[str]:
    """Return likely mistakes of the operator: rules that match nothing, missing variables and files."""
    specs = list(catalog.specs())
    doubts = policy_doubts(settings, policy, specs, unknown_servers(settings, catalog, specs))
    for name in settings.secret_variables:
        value = environ.get(name)
        if value is None or len(value) < LEAST_LENGTH:
            place = settings.position_of("redaction", "secrets")
            problem = f"has fewer than {LEAST_LENGTH} characters" if value else "is empty"
            problem = "is not set" if value is None else problem
            doubts.append(f"{place}: the environment variable {name} {problem}; its value is not redacted")
    doubts += file_doubts(settings, store)
    return [*doubts, *operator_key_doubts(environ), *hint_doubts(specs)]


def hint_doubts(specs: Iterable[ToolSpec]) -> Iterator[str]:
    """Yield the tools whose parameters lack type hints: their arguments are not checked."""
    for spec in specs:
        code = getattr(spec.author, "__code__", None)
        if spec.author is None or code is None or spec.kind != "tool":
            continue
        taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        known = cast("JSONObject", spec.input_schema.get("properties", {}))
        bare = [name for name in taken if name in known and name not in spec.author.__annotations__]
        if bare:
            lacks = "has no type hint" if len(bare) == 1 else "have no type hints"
            remedy = "so every value is accepted; add type hints, or Any where that is meant"
            yield f"{declared_at(spec.author)}: {' and '.join(bare)} {lacks}, {remedy}"


def unknown_servers(settings: Settings, catalog: Catalog, specs: Iterable[ToolSpec]) -> set[str]:
    """Return the MCP servers whose tools are not all known: not asked yet, or with some that are withheld."""
    names = {spec.name for spec in specs}
    withheld = {entry.name for entry in catalog.withheld()}

    def has_any(alias: str, among: set[str]) -> bool:
        return any(name.startswith(f"{alias}.") for name in among)

    return {alias for alias in settings.mcp_tables if has_any(alias, withheld) or not has_any(alias, names)}


# The operator key, which decides approvals over HTTP: its variable and its least length.

OPERATOR_KEY: Final = "PORTBOOK_OPERATOR_KEY"
_LEAST_LENGTH: Final = 16


def operator_key_doubts(environ: Mapping[str, str]) -> list[str]:
    """Return a warning where the operator key is short enough to be guessed."""
    if 0 < len(environ.get(OPERATOR_KEY, "")) < _LEAST_LENGTH:
        return [f"{OPERATOR_KEY} can be guessed; use {_LEAST_LENGTH} characters or more"]
    return []
