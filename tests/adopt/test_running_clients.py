"""Clients that are running are found by their processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from portbook.adopt.running_clients import running_clients
from portbook.exports.client_table import KnownClient
from support.portbook_process import child


def test_a_client_is_found_by_the_name_of_its_program_or_of_its_script(tmp_path: Path) -> None:
    program = tmp_path / "a-client-of-a-test"
    program.symlink_to("/bin/cat")
    wanted = [
        KnownClient("a", "A", (), processes=("a-client-of-a-test",)),
        KnownClient("b", "B", (), processes=("no-client-of-a-test",)),
        KnownClient("c", "C", (), processes=(Path(sys.executable).name,)),
    ]
    with child([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        process.stdin.write(b"x")  # pyright: ignore[reportOptionalMemberAccess] # it was asked for
        # Only once it answers, it surely has its command line.
        assert process.stdout.read(1) == b"x"  # pyright: ignore[reportOptionalMemberAccess] # likewise
        assert [client.name for client in running_clients(wanted)] == ["a", "c"]
