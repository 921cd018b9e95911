"""The processes of one server: whose they are, and how many."""

from __future__ import annotations

import asyncio

import pytest

from portbook.upstreams.session_isolation import InstanceOwner, Instances
from portbook.upstreams.transport import NotSent
from support.fake_upstream import FakeLink, connected


def test_the_session_of_one_caller_is_not_that_of_another() -> None:
    instances = Instances()
    ada = instances.add(InstanceOwner("ada", "s"))
    assert instances.find(InstanceOwner("bob", "s")) is None
    assert instances.find(InstanceOwner("ada", "s")) is ada
    assert instances.of_session("s") == [ada]
    instances.drop(ada)
    assert list(instances) == []


def test_one_too_many_replaces_the_one_that_was_idle_longest() -> None:
    async def main() -> None:
        instances = Instances()
        instances.add(None)
        made = [instances.add(InstanceOwner("ada", str(at))) for at in range(64)]
        for at, each in enumerate(made):
            each.used_at = 100.0 - at
        assert instances.surplus() is made[-1]
        made[-1].connection = busy = await connected(FakeLink())
        busy.begin("tools/list", lambda _: {}, None)
        assert instances.surplus() is made[-2]
        for each in made:
            each.connection = busy
        with pytest.raises(NotSent, match="all are busy"):
            instances.surplus()
        instances.drop(made[0])
        assert instances.surplus() is None

    asyncio.run(main())
