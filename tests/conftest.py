from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from support import counts, leftover_processes
from support.longest_first import begin_with_longest
from support.processor_times import ProcessorTimes
from support.soak import Soak
from support.tables_as_one import TablesAsOne

if TYPE_CHECKING:
    from support.in_process_connection import Connection

pytest_plugins = ["support.certificates", "support.file_queue", "support.postgres_fixtures"]

GOLDEN = Path(__file__).resolve().parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate-golden", action="store_true", help="write the golden files anew")
    parser.addoption("--soak", type=int, metavar="SEED", help="run what has a long count, with that count")
    parser.addoption("--soak-report", metavar="FILE", help="write a line for each promise there, not here")
    parser.addoption("--tables-as-one", action="store_true", help="take a table of cases for one test")
    parser.addoption(
        "--processor-times", action="store_true", help="say how much processor time each file took"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "covers(requirement): the requirement of requirements.toml this test shows"
    )
    config.addinivalue_line("markers", "soak(name): the row of support/counts.py that has its count")
    # Most of what tests make is gone with the next one; looking for cycles less often saves a tenth.
    gc.set_threshold(20_000, 20, 20)
    _let_children_be_interrupted()
    leftover_processes.mark()
    seed: int | None = config.getoption("--soak")
    counts.choose(seed)
    settings.register_profile(
        "quick", max_examples=counts.count("properties"), derandomize=True, deadline=None
    )
    settings.register_profile("soak", max_examples=counts.count("properties"), deadline=None, print_blob=True)
    settings.load_profile("quick" if seed is None else "soak")
    if seed is not None:
        config.pluginmanager.register(Soak(config.getoption("--soak-report")))
    if config.getoption("--processor-times"):
        config.pluginmanager.register(ProcessorTimes(config.getoption("--queue")))
    if config.getoption("--tables-as-one"):
        config.pluginmanager.register(TablesAsOne())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    begin_with_longest(items)


def _let_children_be_interrupted() -> None:
    """Undo an ignored SIGINT, which a shell gives to what it starts in the background, and nohup's SIGHUP.

    Children inherit what is ignored, and no test could interrupt them; what is handled they start anew.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="module", autouse=True)
def _nothing_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a file of tests that leaves a process behind.

    The first fixture of a file to begin is the last to end, so that the file's own ones are over by then.
    """
    yield
    leftover_processes.require_none(request.node.nodeid)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, bytes], None]:
    """Compare bytes with a golden file, or write it anew."""

    def compare(name: str, found: bytes) -> None:
        path = GOLDEN / name
        if request.config.getoption("--regenerate-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(found)
        assert found == path.read_bytes()

    return compare


@pytest.fixture
def connection(tmp_path: Path) -> Connection:
    """A connection to a boundary in this process, over the sample tools."""
    from support.in_process_connection import Connection

    return Connection()
