"""A boundary that runs: who may see what, and which rules are in force."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.audit.memory_sink import NoSink
from portbook.errors import Refused
from portbook.settings import BadSettings
from portbook.stores.caller_keys import digest_of_key
from support.settings_files import load

KEYS = f"""
[keys]
required = true
[[keys.allow]]
name = "ada"
sha256 = "{digest_of_key("ada")}"
tools = ["docs.*"]
"""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    made = assemble(load(tmp_path, KEYS), is_exposed=False, sink=NoSink(), environ={})
    yield made
    asyncio.run(made.close())


def test_only_a_key_that_opens_something_is_known_and_sees_its_tools(app: App) -> None:
    assert app.needs_key
    assert (app.knows("ada"), app.knows("bob"), app.knows(None)) == (True, False, False)
    assert app.tools_open_to("ada") == ["docs.search"]
    with pytest.raises(Refused):
        app.tools_open_to(None)


def test_new_rules_come_into_force_and_bad_ones_leave_the_old(app: App, tmp_path: Path) -> None:
    bad = load(tmp_path, '[[policy.rules]]\nname = "x"\naction = "none"\n')
    with pytest.raises(BadSettings):
        app.govern(bad)
    assert app.needs_key
    app.govern(load(tmp_path, "[docs]\nenabled = true\n"))
    assert not app.needs_key
    assert app.knows(None)
