"""The gateway of an example, as a process of its own on a free port."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.portbook_process import ROOT, child

APIM = ROOT / "examples" / "apim"
_SHOWN = "127.0.0.1:9000"


@contextlib.contextmanager
def gateway_of(folder: Path) -> Iterator[str | None]:
    """Start the `gateway.py` of an example's copy, and let its portbook.toml mean the port that it got.

    Yields its URL; None for an example without a gateway.
    """
    if not (folder / "gateway.py").is_file():
        yield None
        return
    with child(
        [sys.executable, "gateway.py", "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline().decode()
        found = re.search(r"http://(\S+)", said)
        assert found is not None, said
        config = folder / "portbook.toml"
        config.write_text(config.read_text("utf-8").replace(_SHOWN, found[1]), "utf-8")
        yield found[0]


def seen_by(gateway: str) -> list[dict[str, Any]]:
    """Return the requests that a gateway got."""
    with urllib.request.urlopen(f"{gateway}/_seen", timeout=30) as response:
        return json.load(response)
