"""Adoptions that are started together: one is made, the others change and note nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from support.client_home import ClientHome

TOGETHER: Final = 3


@pytest.mark.covers("adopt.together")
def test_adoptions_that_are_started_together_are_undone_byte_for_byte(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, "cursor", "codex")
    before = home.contents()
    with ThreadPoolExecutor(TOGETHER) as pool:
        ended = [each.result() for each in [pool.submit(home.adopt, "--yes") for _ in range(TOGETHER)]]
    assert [done for done in ended if done.code == 0], [done.err for done in ended]
    for done in ended:
        assert done.code == 0 or "has changed meanwhile; run the command again" in done.err
    undone = home.adopt("--undo")
    assert (undone.code, home.contents()) == (0, before), undone.err
    assert not (tmp_path / ".config" / "portbook").exists()
