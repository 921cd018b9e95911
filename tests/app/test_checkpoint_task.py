"""Checkpoints of a boundary in this process: every interval, at the end, and after a store that failed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from portbook.app.checkpoint_task import CheckpointTask
from portbook.audit.checkpoints_made_and_stored import CheckpointStore
from portbook.audit.journal import Journal
from portbook.clock import SystemClock
from portbook.stores.sqlite_store import Store


def journal_in(folder: Path) -> Journal:
    return Journal(folder / "runs", started=SystemClock().now(), run="a", keep=10)


def test_records_are_covered_while_it_runs_and_the_rest_when_it_ends(tmp_path: Path) -> None:
    async def main() -> None:
        store, journal = Store(tmp_path / "portbook.db"), journal_in(tmp_path)
        kept = CheckpointStore(store)
        task = CheckpointTask(
            journal, store, tmp_path / "runs", SystemClock(), lambda: None, lambda _: None, interval_s=0.01
        )
        task.start()
        journal.write(b"{}", b'{"a":1}')
        async with asyncio.timeout(60):
            while not kept.covered():
                await asyncio.sleep(0.01)
        journal.write(b"{}", b'{"a":2}')
        await task.close()
        journal.close()
        segments = [each for covered in kept.covered() for each in covered.segments]
        assert segments[-1].last == 2
        store.close()

    asyncio.run(main())


def test_a_store_that_fails_is_told_once_and_covered_when_it_works_again(tmp_path: Path) -> None:
    path, told = tmp_path / "portbook.db", list[str]()

    async def main() -> None:
        store, journal = Store(path), journal_in(tmp_path)
        task = CheckpointTask(
            journal, store, tmp_path / "runs", SystemClock(), lambda: None, told.append, interval_s=0.01
        )
        path.mkdir()
        task.start()
        journal.write(b"{}", b'{"a":1}')
        async with asyncio.timeout(60):
            while not told:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            path.rmdir()
        await task.close()
        journal.close()
        [covered] = CheckpointStore(store).covered()
        assert [each.last for each in covered.segments] == [1]
        store.close()

    asyncio.run(main())
    assert len(told) == 1
