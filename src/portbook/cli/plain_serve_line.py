"""Reads a plain command line of `portbook serve` without click, a twentieth of the start of a server.

Plain is what clients start servers with: toolsets, and the options below, each spelled out. Click reads
every other line, and reports what is wrong with it. A test compares the two.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from portbook.text.stand_ins import import_server_libraries

__all__ = ["plain_line", "server_of"]

_FLAGS: Final = {"--stdio": "stdio", "--debug": "debug", "--deterministic-ids": "deterministic_ids"}

# By the kind of what may be there: a file that is read, a folder that is written to.
_PATHS: Final = {"--config": stat.S_ISREG, "--log-dir": stat.S_ISDIR}

# Set by a shell that asks for completions, which click answers.
_COMPLETION: Final = "_PORTBOOK_COMPLETE"


def plain_line(arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the options and toolsets of a plain line, paths as texts; None where click has to read it."""
    if arguments[:1] != ["serve"] or _COMPLETION in environment:
        return None
    toolsets: list[str] = []
    given: dict[str, Any] = {}
    left = iter(arguments[1:])
    for argument in left:
        name, is_joined, value = argument.partition("=")
        if argument in _FLAGS:
            given[_FLAGS[argument]] = True
        elif name in _PATHS:
            path = value if is_joined else next(left, "")
            if not _is_usable(path, _PATHS[name]):
                return None
            given[name[2:].replace("-", "_")] = path
        elif not argument or argument.startswith("-"):
            return None
        else:
            toolsets.append(argument)
    return {"toolsets": tuple(toolsets), **given}


def _is_usable(path: str, is_kind: Any) -> bool:
    """Return whether a path is what it has to be, or may become it: click tells what is wrong with others."""
    if not path or path.startswith("-"):
        return False
    try:
        found = os.stat(path)  # noqa: PTH116 - `pathlib` is imported later, without what it seldom needs
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return bool(is_kind(found.st_mode)) and os.access(path, os.R_OK)


def server_of(line: dict[str, Any]) -> Callable[[], None]:
    """Import what serves a plain line; return what serves it, and exits."""
    import_server_libraries()
    from pathlib import Path  # late, all: nothing of it is imported for other lines

    from portbook.cli.output_and_errors import end_with
    from portbook.cli.serve import serve

    paths: dict[str, Any] = {name: Path(line[name]) for name in ("config", "log_dir") if name in line}
    return lambda: end_with(lambda: serve(**line | paths))
