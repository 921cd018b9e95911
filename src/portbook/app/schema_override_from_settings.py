"""Replaces an official schema by the one at `schema_override_uri`, or warns that it is ignored."""

from __future__ import annotations

from portbook.net.destinations import without_secrets
from portbook.net.override_fetch import CannotFetch, fetch
from portbook.schema.official_schema_override import FETCH_S, MAX_BYTES, BadOverride, check_override
from portbook.schema.official_schemas import SchemaStore
from portbook.settings import Settings

__all__ = ["overridden_schemas"]


def overridden_schemas(settings: Settings, uri: str, embedded: SchemaStore) -> tuple[SchemaStore, list[str]]:
    """Return the official schemas with the one at `uri`, or the `embedded` ones and a warning."""
    origin = without_secrets(uri)
    try:
        data = fetch(uri, limit=MAX_BYTES, timeout_s=FETCH_S)
        override = check_override(
            data, settings.schema_override_revision, settings.schema_override_sha256, origin=origin
        )
    except CannotFetch as error:
        reason = str(error)
    except BadOverride as error:
        reason = f"{origin}: {error}"
    else:
        return SchemaStore(override), []
    place = settings.opening("schema_override_uri")
    return embedded, [f"{place}the schema override is ignored and the embedded schemas are used: {reason}"]
