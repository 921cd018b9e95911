"""Begins a run with the files of tests that take longest, so that no process is left with one at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

__all__ = ["LONGEST", "begin_with_longest", "place_of"]

# What `pytest --processor-times` prints at the top, with ten seconds or more; and what waits for long.
LONGEST: Final = (
    "conformance/test_suite.py",
    "browser/test_tools.py",  # and all files of its package with it
    "bench/test_instructions.py",
    "system/test_readme.py",
    "interop/test_real_servers.py",
    "interop/test_official_clients.py",
    "bench/test_tiny_run.py",
    "cli/test_export.py",
    "interop/test_first_sse_client.py",
    "interop/test_adopted_client.py",
    "system/test_requirements_at_the_door.py",
    "system/test_changed_definitions.py",
    "system/test_postgres_nodes.py",
    "system/test_verdicts.py",
    "cli/test_serve_reload.py",
    "cli/test_worker_supervisor.py",
    "system/test_any_node.py",
    "system/test_unusable_entries.py",
    "system/test_hostile_servers.py",
    "system/test_schemathesis.py",
    "schema/test_evaluation_cost.py",
    "system/test_counts.py",
    "system/test_checkpoints.py",
    "cli/test_adopt.py",
    "system/test_mcp_server_settings.py",
    "system/test_lying_servers.py",
    "bench/test_nodes.py",
    "system/test_file_queue.py",
    "system/test_adopted_files.py",
    "system/test_mcp_servers.py",
    "mcp/test_connection.py",
)


_PLACES: Final = {file: place for place, file in enumerate(LONGEST)}


def begin_with_longest(items: list[pytest.Item]) -> None:
    """Bring the tests of those files to the front; all others stay in their order."""
    items.sort(key=lambda item: place_of(item.path))


def place_of(path: Path) -> int:
    """The place of a file among those that take longest; all others come after them."""
    return _PLACES.get(path.as_posix().rpartition("/tests/")[2], len(_PLACES))
