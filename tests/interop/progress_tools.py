"""A tool that tells how far it has come, for the clients that listen."""

import time
from pathlib import Path

from portbook import Context, Toolset

toolset = Toolset("progress")


@toolset.tool(effect="write")
def three_steps(context: Context, path: str) -> str:
    """Make a file, take three steps and say so after each, and wait until the file is gone."""
    flag = Path(path)
    flag.touch()
    for step in (1, 2, 3):
        context.progress(step, 3, f"step {step}")
    while flag.exists():
        time.sleep(0.005)
    return "there"
