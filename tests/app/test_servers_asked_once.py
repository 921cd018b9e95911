"""Servers that are asked once what they offer."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from portbook.app.servers_asked_once import ask_servers, declared_servers
from portbook.settings import load_settings
from portbook.upstreams.listed_definitions import Offer
from support.pinned_folder import LIST, SEND, PinnedFolder


def test_each_server_says_what_it_offers_or_why_not(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path, before='[mcp.broken]\ncommand = ["/no/such/program"]')
    folder.offer(SEND, LIST, instructions="Be kind.")
    settings = load_settings(folder.settings, {}, {}, tmp_path)
    declared = declared_servers(settings)
    assert [each.alias for each in declared] == ["broken", "box"]
    found = asyncio.run(ask_servers(settings, declared, os.environ))
    box, broken = found["box"], found["broken"]
    assert isinstance(box, Offer)
    assert [each.definition for each in box.of("tool")] == [SEND, LIST]
    assert box.instructions == "Be kind."
    assert isinstance(broken, str)
    assert "No such file" in broken
    assert not folder.lock.exists()
