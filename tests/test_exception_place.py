"""Where an exception comes from: the tool's own code, whatever it called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portbook.exception_place import ToolExit, place_of, places_in_tool, raised_by

LIBRARY = "def call(function):\n    return function()\n"
TOOL = "def tool(call):\n    return call(fail)\n\n\ndef fail():\n    return {}['canary']\n"
OUTER = "def outer(call):\n    return call({}.popitem)\n"


def defined(path: str, source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(compile(source, path, "exec"), found)
    return found


def raised(function: Callable[..., Any], *arguments: Any) -> BaseException:
    try:
        function(*arguments)
    except BaseException as error:
        return error
    raise AssertionError


def innermost(error: BaseException) -> tuple[str, int]:
    code, line = places_in_tool(error)[-1]
    return code.co_filename, line


@pytest.mark.parametrize(
    "library",
    ["/env/lib/site-packages/far/calls.py", "/usr/lib/dist-packages/calls.py", "<frozen calls>", "<string>"],
)
def test_the_innermost_frame_that_is_no_librarys_is_named(library: str) -> None:
    call = defined(library, LIBRARY)["call"]
    # This file is the outermost frame of all, and not the tool's.
    assert innermost(raised(defined("/home/ada/tools.py", OUTER)["outer"], call)) == ("/home/ada/tools.py", 2)
    assert innermost(raised(defined("/home/ada/tools.py", TOOL)["tool"], call)) == ("/home/ada/tools.py", 6)


def test_of_an_installed_tool_its_own_folder_is_named() -> None:
    call = defined("/env/lib/site-packages/far/calls.py", LIBRARY)["call"]
    error = raised(defined("/env/lib/site-packages/shop/tools.py", OUTER)["outer"], call)
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next  # without this file
    assert innermost(error) == ("/env/lib/site-packages/shop/tools.py", 2)


def test_what_a_tool_raised_is_told_and_not_what_carries_it() -> None:
    def leave() -> None:
        raise SystemExit("canary")

    carried = ToolExit(raised(leave))
    assert isinstance(raised_by(carried), SystemExit)
    assert place_of(carried).startswith(f"SystemExit at {Path(__file__).name}:")
    assert innermost(carried)[0] == __file__
    assert "canary" not in place_of(carried) + str(carried)


def test_an_exception_that_was_never_raised_has_no_place() -> None:
    assert places_in_tool(ValueError()) == []
    assert place_of(ValueError()) == ""


def test_a_record_names_the_tools_own_line_however_deep_in_a_library_it_was_raised() -> None:
    deep = "def call(function, depth=5):\n    return call(function, depth - 1) if depth else function()\n"
    call = defined("/env/lib/site-packages/far/calls.py", deep)["call"]
    error = raised(defined("/home/ada/tools.py", OUTER)["outer"], call)
    places = place_of(error).split(" < ")
    assert places[0] == "KeyError at calls.py:2 in call"
    assert places[1:] == ["calls.py:2 in call", "calls.py:2 in call", "tools.py:2 in outer"]


def test_the_name_of_a_file_that_is_no_text_is_written_as_text() -> None:
    source = compile("1 / 0", "/tools/t\udcff.py", "exec")  # no such file could be committed
    with pytest.raises(ZeroDivisionError) as raised:
        eval(source)
    assert "t\\udcff.py:1" in place_of(raised.value)
