"""Clients that are running are found by their processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from portbook.adopt.client_table import KnownClient
from portbook.adopt.running_clients import running_clients
from support.portbook_process import child


def test_a_client_is_found_by_the_name_of_its_program_or_of_its_script(tmp_path: Path) -> None:
    program, script = tmp_path / "a-client-of-a-test", tmp_path / "node" / "node"
    script.parent.mkdir()
    for each in (program, script):
        each.symlink_to("/bin/sleep")
    wanted = [
        KnownClient("a", "A", (), processes=("a-client-of-a-test",)),
        KnownClient("b", "B", (), processes=("no-client-of-a-test",)),
        KnownClient("c", "C", (), processes=(Path(sys.executable).name,)),
    ]
    with child([str(program), "60"]) as process:
        assert process.pid != os.getpid()
        assert [client.name for client in running_clients(wanted)] == ["a", "c"]
