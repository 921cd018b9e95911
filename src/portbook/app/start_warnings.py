"""What an operator is warned of at start: likely mistakes in the settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from portbook.app.file_doubts import file_doubts
from portbook.app.operator_key import operator_key_doubts
from portbook.app.policy_doubts import policy_doubts
from portbook.policy import Policy
from portbook.settings import Settings
from portbook.tools.catalog import Catalog
from portbook.tools.spec import ToolSpec

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["doubts_of", "unknown_servers"]


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
