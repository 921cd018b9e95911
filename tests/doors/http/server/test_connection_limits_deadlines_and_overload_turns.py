"""More requests than one turn of the loop has time for wait for the next ones, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from portbook.doors.http.server.connection_limits_deadlines_and_overload import Turns


class Scene:
    """A clock that is set, and connections that note their turns."""

    def __init__(self) -> None:
        self.now = 100.0
        self.taken: list[str] = []
        self.turns = Turns(lambda: self.now)


class Connection:
    def __init__(self, name: str, scene: Scene, seconds: float, again: int = 0) -> None:
        self._name = name
        self._scene = scene
        self._seconds = seconds
        self._again = again

    def take_turn(self) -> None:
        self._scene.taken.append(self._name)
        self._scene.now += self._seconds
        if self._again:
            self._again -= 1
            self._scene.turns.wait(self)


def play(main: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def scene() -> None:
        await main(Scene())

    asyncio.run(scene())


def test_a_turn_has_ten_milliseconds() -> None:
    async def main(scene: Scene) -> None:
        assert scene.turns.has_time()
        scene.now += 0.009
        assert scene.turns.has_time()
        scene.now += 0.002
        assert not scene.turns.has_time()
        await asyncio.sleep(0)
        assert scene.turns.has_time()

    play(main)


def test_those_who_wait_go_first_and_in_order_as_many_as_there_is_time_for() -> None:
    async def main(scene: Scene) -> None:
        for name in "abcde":
            scene.turns.wait(Connection(name, scene, 0.006))
        assert not scene.turns.has_time()
        await asyncio.sleep(0)
        assert scene.taken == ["a", "b"]
        assert not scene.turns.has_time()
        await asyncio.sleep(0)
        assert scene.taken == ["a", "b", "c", "d"]
        await asyncio.sleep(0)
        assert scene.taken == ["a", "b", "c", "d", "e"]

    play(main)


def test_a_connection_that_has_more_waits_behind_the_others() -> None:
    async def main(scene: Scene) -> None:
        scene.turns.wait(Connection("greedy", scene, 0.0, again=2))
        scene.turns.wait(Connection("other", scene, 0.0))
        await asyncio.sleep(0)
        assert scene.taken == ["greedy", "other"]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert scene.taken == ["greedy", "other", "greedy", "greedy"]
        await asyncio.sleep(0)
        assert scene.turns.has_time()

    play(main)


def test_it_is_late_if_the_first_one_has_been_waiting_for_long() -> None:
    async def main(scene: Scene) -> None:
        assert not scene.turns.is_late
        scene.turns.wait(Connection("first", scene, 0.0))
        assert not scene.turns.is_late
        scene.now += 11
        scene.turns.wait(Connection("second", scene, 0.0))
        assert scene.turns.is_late
        await asyncio.sleep(0)
        assert not scene.turns.is_late

    play(main)
