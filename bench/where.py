"""Where the instructions of one call go, by our functions. `python -m bench.instructions --where` prints it.

A mark stands before every statement on the way of the call, and callgrind counts from one mark to the next.
What a native library takes counts for the statement that calls it; the return of a function counts for its
last statement. What the marks take themselves is subtracted: the shortest way between two of them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.callgrind import callgrind
from bench.child import Child, WrongAnswer
from bench.way import measure_way

__all__ = ["count_by_function", "show_by_file"]

_SERVERS: Final = Path(__file__).resolve().parent / "servers"

# What reads, when something has come; everything else follows.
_READ: Final = "doors/stdio.py:Reader._take"

# Python makes its instructions faster where they ran a few times, so each read is sent that often before.
_WARM_UP: Final = 12


def count_by_function(settings: str, before: Sequence[bytes], calls: bytes, mark: bytes) -> dict[str, float]:
    """Return the instructions of one of `calls`, which are one read, by our functions.

    `before` opens the connection. `mark` calls the tool of that name, which begins and ends the count.

    Raises `Missing` without valgrind.
    """
    served = ["serve", str(_SERVERS / "counted_tools.py"), "--log-dir", "log", "--stdio"]
    command = [*callgrind([sys.executable, str(_SERVERS / "watched.py"), *served])]
    command.insert(1, "--combine-dumps=yes")  # thousands of them
    files = {name.partition(":")[0] for name, _ in measure_way().functions}
    with TemporaryDirectory(prefix="portbook-bench-") as name:
        folder = Path(name)
        (folder / "portbook.toml").write_text(settings)
        extra = {"PYTHONHASHSEED": "0", "WATCHED": ",".join(sorted(files))}
        with Child(command, folder, extra) as child:
            for chunk in (*before, *[calls] * _WARM_UP, mark, calls):
                child.write(chunk)
                child.read_lines(sum(b'"id":' in line for line in chunk.splitlines()))
            child.write(mark)
            with suppress(WrongAnswer):  # it ends there
                child.read_lines(1)
        passed: list[str] = json.loads((folder / "passed.json").read_text())
        parts = re.findall(r"^totals: (\d+)", (folder / "counted").read_text(), re.MULTILINE)
    # Each part ends at a mark; what follows the mark is the part after it.
    taken = list(map(int, parts[1 : len(passed)]))
    first, after = _reads(passed)
    least, number = min(taken), calls.count(b"\n")
    spent: Counter[str] = Counter()
    for at in range(first, after):
        spent[passed[at]] += taken[at] - least
    return {place: total / number for place, total in spent.most_common()}


def _reads(passed: Sequence[str]) -> list[int]:
    """Return where the read of the calls begins, and the next one, of the last mark."""
    within = [at for at, place in enumerate(passed) if place == _READ]
    return [at for at in within if passed[at - 1] != _READ]


def show_by_file(spent: dict[str, float]) -> list[str]:
    """Return the lines of a table: files, the most expensive first, each with its functions."""
    files: Counter[str] = Counter()
    for place, instructions in spent.items():
        files[place.partition(":")[0]] += round(instructions)
    lines = [f"{sum(files.values()):>9,}  of one call, by file and function"]
    for file, total in files.most_common():
        lines.append(f"{total:>9,}  {file}")
        lines += [
            f"{round(instructions):>20,}  {place.partition(':')[2]}"
            for place, instructions in spent.items()
            if place.partition(":")[0] == file and round(instructions)
        ]
    return lines
