"""Runs `portbook` on a pseudo terminal."""

from __future__ import annotations

import os
import pty
from pathlib import Path

from support.portbook_process import PORTBOOK, child, environment


def on_a_terminal(
    folder: Path, *arguments: str, term: str = "xterm", typed: str = ""
) -> tuple[str, int | None]:
    """Run on a pseudo terminal where a person has typed ahead; return what it shows, and its exit status."""
    ours, theirs = pty.openpty()
    with child(
        [*PORTBOOK, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment(TERM=term),
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:  # what Linux says when the other side is closed
            pass
        finally:
            os.close(ours)
        return shown.decode().replace("\r\n", "\n"), process.wait(30)
