"""Runs a Python program in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def run_python(program: str, *arguments: str, seed: str = "random") -> Any:
    """Run a program in a process of its own, and return the JSON that it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
        timeout=60,
    )
    return json.loads(done.stdout)
