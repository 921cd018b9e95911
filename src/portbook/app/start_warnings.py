"""What an operator is warned of at start: likely mistakes in the settings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from portbook.app.operator_key import operator_key_doubts
from portbook.globs import is_pattern, matches
from portbook.policy import Policy, Rule
from portbook.policy.argument_defaults import Reach, declared_names, reach
from portbook.settings import Settings
from portbook.stores.store_errors import StoreError
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.catalog import Catalog
from portbook.tools.spec import ToolSpec

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort
    from portbook.tools.http_operation import HttpOperation

__all__ = [
    "doubts_of",
    "file_doubts",
    "policy_doubts",
    "problem_of_store",
    "refuse_vain_conditions",
    "unknown_servers",
]

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


# What a policy says in vain: conditions, patterns and destinations that fit nothing that is served.
#
# Certain mistakes stop the start: a rule that names its tools in full, and checks an argument that none of
# them takes. The rest are warnings, because one policy may govern several servers, and a tool may come later.

_Path: TypeAlias = tuple[str | int, ...]
_WHAT_IS_SERVED = "`portbook tools` lists what is served"


def refuse_vain_conditions(settings: Settings, policy: Policy, specs: Sequence[ToolSpec]) -> None:
    """Check that no rule waits for an argument that the tools it names cannot be given.

    Raises `BadSettings` for the first one, with file and line.
    """
    for number, rule in enumerate(policy.rules):
        is_certain = all(not is_pattern(name) and _fitting((name,), rule, specs) for name in rule.tools)
        vain = _vain_condition(rule, specs)
        if vain is not None and is_certain and vain[1] is Reach.CLOSED:
            hint = _hint(vain[0], rule, specs)
            raise settings.complain(
                ("policy", "rules", number, "where", vain[0]),
                f"can never be met: no tool of rule {rule.name!r} takes this argument; {hint}",
            )


def policy_doubts(
    settings: Settings, policy: Policy, specs: Sequence[ToolSpec], unknown: Collection[str] = ()
) -> list[str]:
    """Return what has no effect with these tools, each with file and line.

    `unknown` are the MCP servers that may have further tools.
    """
    rules = (
        f"{settings.position_of('policy', 'rules', number, *path)}: rule {rule.name!r} {sentence}"
        for number, rule in enumerate(policy.rules)
        if not any(_may_be_of(pattern, unknown) for pattern in rule.tools)
        for path, sentence in _doubts_of_rule(
            rule, specs, names_tools="tools" in settings.policy_rules[number]
        )
    )
    return [*rules, *_doubts_of_keys(settings, specs, unknown), *_doubts_of_gateways(settings, policy, specs)]


def _doubts_of_rule(
    rule: Rule, specs: Sequence[ToolSpec], *, names_tools: bool
) -> Iterator[tuple[_Path, str]]:
    """Yield the key of a rule, and what is in vain there."""
    known = sorted({spec.name for spec in specs if matches(rule.kinds, spec.policy_kind)})
    dead = [pattern for pattern in rule.tools if not any(matches((pattern,), name) for name in known)]
    if len(dead) == len(rule.tools):
        yield (), f"matches nothing that is served; {did_you_mean(dead[0], known, _WHAT_IS_SERVED)}"
        return
    for pattern in dead:
        hint = did_you_mean(pattern, known, _WHAT_IS_SERVED)
        yield ("tools",), f"names {pattern!r}, which matches nothing that is served; {hint}"
    if rule.selects_tags:
        tags = sorted({tag for spec in specs for tag in spec.tags})
        for pattern in (each for each in rule.tags if not any(matches((each,), tag) for tag in tags)):
            hint = did_you_mean(pattern, tags, "`portbook tools --tree` shows the tags")
            yield ("tags",), f"names the tag {pattern!r}, which nothing that is served has; {hint}"
    # A rule for every tool may name an effect that no tool has yet; one that names its tools speaks of these.
    if names_tools and not rule.selects_tags and not _about(rule, specs):
        effects = " or ".join(rule.effects)
        yield ("effects",), f"matches nothing that is served: no tool that it names has the effect {effects}"
    for each in rule.where:
        from portbook.policy.rules_without_effect import is_contradictory  # late: few rules have conditions

        if is_contradictory(each.schema):
            yield (
                ("where", each.pointer),
                f"sets conditions for {each.pointer!r} that contradict each other; no value meets them",
            )
    vain = _vain_condition(rule, specs)
    if vain is not None:
        pointer, _ = vain
        hint = _hint(pointer, rule, specs)
        yield ("where", pointer), f"checks {pointer!r}, which no tool that it matches declares; {hint}"


def _doubts_of_keys(settings: Settings, specs: Sequence[ToolSpec], unknown: Collection[str]) -> Iterator[str]:
    known = sorted({spec.name for spec in specs})
    for number, key in enumerate(settings.allowed_keys):
        for pattern in key.tools:
            is_known = pattern == "*" or any(matches((pattern,), name) for name in known)
            if not is_known and not _may_be_of(pattern, unknown):
                place = settings.position_of("keys", "allow", number, "tools")
                yield (
                    f"{place}: key {key.name!r} names {pattern!r}, "
                    f"which matches nothing that is served; {did_you_mean(pattern, known, _WHAT_IS_SERVED)}"
                )


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
        yield from _doubts_of_hosts(
            gateway, own, policy, declared, settings.position_of("policy", "allowed_domains")
        )
        methods = {operation.method for operation in own}
        if policy.methods is not None and not methods & policy.methods:
            missing, place = " or ".join(sorted(methods)), settings.position_of("policy", "allowed_methods")
            yield (
                f"{place}: policy.allowed_methods has none of the methods of "
                f"{gateway} at {declared}; every call of its tools is denied; add {missing}"
            )


def _doubts_of_hosts(
    gateway: str, operations: Sequence[HttpOperation], policy: Policy, declared: str, allowed: str
) -> Iterator[str]:
    """Yield the hosts of a gateway that may not be called; an unusable base URL has its own warning."""
    denied = Counter(
        (operation.destination.authority, operation.is_proposed, operation.is_elsewhere)
        for operation in operations
        if operation.destination is not None and not policy.lists(operation)
    )
    for (host, is_proposed, is_elsewhere), count in sorted(denied.items()):
        if not is_proposed:
            yield (
                f"{allowed}: policy.allowed_domains excludes the host of "
                f"{gateway}.base_url at {declared}; every call of its tools is denied; add the host"
            )
        elif policy.limits.allowed_domains is None:
            why = "it has for single operations only" if is_elsewhere else "is not public https"
            yield (
                f"{declared}: the document of {gateway} names the server {host}, which {why}; calls of its "
                f"{count} tools are denied; set base_url, or list it in allowed_domains"
            )
        else:
            yield (
                f"{allowed}: policy.allowed_domains excludes {host}, which the "
                f"document of {gateway} at {declared} names; calls of its {count} tools are denied; add it"
            )


# -- conditions


def _vain_condition(rule: Rule, specs: Sequence[ToolSpec]) -> tuple[str, Reach] | None:
    """Return the pointer of a condition that no tool of `rule` declares, and how far one could be given it.

    None where a tool declares every place that the rule checks, or where the rule matches no tool.
    """
    about = _about(rule, specs)
    if not about or not rule.where:
        return None
    reached = [[reach(spec.input_schema, each.segments) for each in rule.where] for spec in about]
    best = max(min(row) for row in reached)
    if best is Reach.DECLARED:
        return None
    at = next(
        (at for at in range(len(rule.where)) if max(row[at] for row in reached) <= best),
        0,  # each place is declared by some tool, and all of them by none
    )
    return rule.where[at].pointer, best


def _about(rule: Rule, specs: Iterable[ToolSpec]) -> list[ToolSpec]:
    return [spec for spec in specs if rule.is_about(spec.policy_kind, spec.name, spec.effect, spec.tags)]


def _fitting(patterns: tuple[str, ...], rule: Rule, specs: Iterable[ToolSpec]) -> bool:
    return any(matches(patterns, spec.name) and matches(rule.kinds, spec.policy_kind) for spec in specs)


def _hint(pointer: str, rule: Rule, specs: Iterable[ToolSpec]) -> str:
    names = sorted({f"/{name}" for spec in _about(rule, specs) for name in declared_names(spec.input_schema)})
    return did_you_mean(pointer, names, "`portbook tools --json` shows the arguments of each tool")


def doubts_of(
    settings: Settings, policy: Policy, catalog: Catalog, environ: Mapping[str, str], store: StorePort
) -> list[str]:
    """Return likely mistakes of the operator: rules that match nothing, missing variables and files."""
    specs = list(catalog.specs())
    doubts = policy_doubts(settings, policy, specs, unknown_servers(settings, catalog, specs))
    for name in settings.secret_variables:
        if not environ.get(name):
            place = settings.position_of("redaction", "secrets")
            doubts.append(f"{place}: the environment variable {name} is not set; its value is not redacted")
    return [*doubts, *file_doubts(settings, store), *operator_key_doubts(environ)]


def unknown_servers(settings: Settings, catalog: Catalog, specs: Iterable[ToolSpec]) -> set[str]:
    """Return the MCP servers whose tools are not all known: not asked yet, or with some that are withheld."""
    names = {spec.name for spec in specs}
    withheld = {entry.name for entry in catalog.withheld()}

    def has_any(alias: str, among: set[str]) -> bool:
        return any(name.startswith(f"{alias}.") for name in among)

    return {alias for alias in settings.mcp_tables if has_any(alias, withheld) or not has_any(alias, names)}
