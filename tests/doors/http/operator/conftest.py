from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.operator_console import Console, operator_console


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with operator_console(tmp_path_factory.mktemp("console")) as served:
        yield served
