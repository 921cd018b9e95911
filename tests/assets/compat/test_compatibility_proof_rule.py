"""All statements are tried, even after one that fails."""

from __future__ import annotations

from portbook.assets.compat.compatibility_proof import every


def test_each_statement_is_tried_and_all_have_to_hold() -> None:
    tried: list[int] = []

    def holds(number: int) -> bool:
        tried.append(number)
        return number != 1

    assert not every(map(holds, range(3)))
    assert tried == [0, 1, 2]
    assert every(map(holds, (0, 2)))
