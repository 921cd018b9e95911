"""The command that starts a server confined, and why one cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from portbook.sandbox import confine
from portbook.sandbox.confined_command import NotConfinable, confined_command
from portbook.sandbox.declared_sandbox import DeclaredSandbox
from portbook.sandbox.supported_systems import problem_of_system

WHO = {"PATH": "/usr/bin:/bin"}


def test_the_rules_are_what_the_settings_grant_and_what_every_program_needs(tmp_path: Path) -> None:
    granted = DeclaredSandbox(read=(tmp_path,), write=(tmp_path,), connect=(443,), memory_mb=2, processes=9)
    command = confined_command(["sh", "-c", "true"], granted, WHO, tmp_path)
    rules = json.loads(command[4])
    assert command[-3:] == ("sh", "-c", "true")
    assert {str(tmp_path), "/dev/null"} <= set(rules["read"])
    assert rules["write"] == ["/dev/null", "/dev/full", str(tmp_path)]
    assert (rules["connect"], rules["memory_bytes"], rules["processes"]) == ([443], 2 << 20, 9)


@pytest.mark.parametrize(
    ("system", "version", "why"),
    [("darwin", 9, "only Linux"), ("linux", 0, "no Landlock"), ("linux", 3, "cannot limit connections")],
)
def test_a_system_that_cannot_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str, version: int, why: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(confine, "abi", lambda: version)
    assert why in str(problem_of_system())
    with pytest.raises(NotConfinable, match=why):
        confined_command(["sh"], DeclaredSandbox(), WHO, tmp_path)
    assert (problem_of_system(limits_ports=False) is None) == (version == 3)


@pytest.mark.skipif(problem_of_system() is not None, reason=str(problem_of_system()))
@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (["sh", "-c", "exit 7"], 7, b""),
        (["sh", "-c", "read x < /etc/passwd"], 2, b"Permission denied"),
        (["no-such-program"], 126, b"cannot be started"),
    ],
)
def test_a_confined_program_ends_as_it_would_without(
    tmp_path: Path, command: list[str], status: int, said: bytes
) -> None:
    confined = confined_command(command, DeclaredSandbox(), WHO, tmp_path)
    done = subprocess.run(confined, env=WHO, cwd=tmp_path, capture_output=True, timeout=30, check=False)
    assert (done.returncode, said in done.stderr) == (status, True)
