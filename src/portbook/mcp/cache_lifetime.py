"""How long a client may cache a result, where its revision says so. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.model import JSONObject
from portbook.protocol.revisions_and_methods import Revision

__all__ = ["as_page", "cached_by_all", "kept_for"]

# What is served changes seldom, and subscribed clients are notified.
_CACHE_MS: Final = 60_000


def as_page(result: JSONObject, revision: Revision) -> JSONObject:
    """Return a listing's result, with its cache lifetime where the revision has one."""
    return kept_for(_CACHE_MS, result, revision)


def kept_for(cache_ms: int, result: JSONObject, revision: Revision) -> JSONObject:
    """Return a result with the time for which its caller may cache it, where the revision has one."""
    return _cacheable(result, "private", cache_ms) if revision.has_result_type else result


def cached_by_all(result: JSONObject) -> JSONObject:
    """Return a result that is the same for every caller."""
    return _cacheable(result, "public", _CACHE_MS)


def _cacheable(result: JSONObject, scope: str, cache_ms: int) -> JSONObject:
    return {**result, "resultType": "complete", "ttlMs": cache_ms, "cacheScope": scope}
