"""What servers offered when they were last asked."""

from __future__ import annotations

from pathlib import Path

from portbook.clock import SystemClock
from portbook.stores.sqlite_store import Store
from portbook.stores.upstream_status_and_offers import Observation, ObservationStore


class Calendar(SystemClock):
    """A clock that is set."""

    def __init__(self) -> None:
        self.today = "2026-01-01T00:00:00.000Z"

    def now(self) -> str:
        return self.today


def test_the_last_offer_of_each_server_is_kept_with_the_time_it_was_first_seen(tmp_path: Path) -> None:
    path, clock = tmp_path / "portbook.db", Calendar()
    store = Store(path)
    observations = ObservationStore(store, clock)
    assert observations.of("github") is None
    assert not path.exists()
    observations.remember("github", {"tools": {"a": {}}}).result()
    observations.remember("files", {}).result()
    clock.today = "2026-01-02T00:00:00.000Z"
    observations.remember("github", {"tools": {"a": {}}}).result()
    other = Store(path)
    kept = ObservationStore(other, clock)
    assert kept.of("github") == Observation({"tools": {"a": {}}}, "2026-01-01T00:00:00.000Z")
    observations.remember("github", {"tools": {}}).result()
    assert kept.of("github") == Observation({"tools": {}}, "2026-01-02T00:00:00.000Z")
    assert kept.of("files") == Observation({}, "2026-01-01T00:00:00.000Z")
    assert kept.of("unknown") is None
    store.close()
    other.close()
