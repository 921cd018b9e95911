"""The two tiers of the tests, and what every run of them keeps: no ignored SIGINT, no process left behind."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.counts import COUNTS
from support.leftover_processes import PROC
from support.longest_first import LONGEST
from support.portbook_process import TESTS, environment

MANY = """
import pytest
from support.counts import COUNTS, count, seed
from hypothesis import given, settings, strategies as st

@pytest.mark.soak("log kills")
@pytest.mark.parametrize("part", [0, 1])
def test_it_takes_its_count(part):
    assert count("log kills") == COUNTS["log kills"].{tier}
    assert seed() == {seed}

@given(st.integers())
def test_of_everything(number):
    assert settings().max_examples == COUNTS["properties"].{tier}

def test_that_has_no_count():
    pass
"""

BROKEN = """
import pytest

@pytest.mark.soak("server kills")
def test_one():
    assert False

@pytest.mark.soak("server kills")
def test_two():
    pass
"""

INTERRUPTED = """
import signal, subprocess, sys

def test_a_child_can_be_interrupted():
    child = "import signal, sys; sys.exit(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    assert subprocess.run([sys.executable, "-c", child]).returncode == 0
"""

LEAVING = """
import subprocess, sys

def test_that_leaves_a_child():
    leaving = "import subprocess; subprocess.Popen(['sleep', '600'])"
    subprocess.run([sys.executable, "-c", leaving])
"""

TABLES = """
import pytest

@pytest.fixture(scope="module")
def of_the_file():
    return []

@pytest.fixture
def of_each_test():
    return []

@pytest.mark.parametrize("one", [1, "two", None, 4.5, b"five", pytest.param((), id="six"), [7], len])
@pytest.mark.parametrize(("left", "right"), [(1, 2), (3, 4)], ids=["low", "high"])
def test_of_two_tables(one, left, right, of_the_file):
    of_the_file.append(1)
    assert len(of_the_file) % 16 in (1, 2, 0)

@pytest.mark.parametrize("word", {"a": 1, "b": 2}, ids=lambda word: word * 3)
def test_of_words(word):
    pytest.fail(word)

@pytest.mark.parametrize("number", [1, 2])
def test_that_is_given_what_no_other_is(number, of_each_test):
    of_each_test.append(number)
    assert of_each_test == [number]

@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.skip)])
def test_of_which_a_case_is_marked(number):
    pass

@pytest.mark.parametrize("number", [1, 2])
def test_of_which_a_case_skips(number):
    if number == 2:
        pytest.skip("not here")

@pytest.mark.parametrize("number", [1, 2])
def test_that_passes(number):
    pass
"""


def pytest_run(folder: Path, code: str, *options: str, before: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(code)
    # With the hooks that this run has, and its plugins.
    loaded = ("xdist", "timeout", "hypothesispytest", "conftest")
    plugins = ("--disable-plugin-autoload", *(part for name in loaded for part in ("-p", name)))
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "--rootdir", str(folder), *options]
    return subprocess.run(
        ["sh", "-c", f'{before}exec "$@"', "sh", *command, str(folder)],
        cwd=folder,
        env=environment(PYTHONPATH=str(TESTS)),
        capture_output=True,
        text=True,
        timeout=60,
    )


def named_by_tests() -> set[str]:
    return {
        node.args[0].value
        for path in TESTS.rglob("test_*.py")
        if path != Path(__file__) and "pytest.mark.soak" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "pytest.mark.soak"
        and isinstance(node.args[0], ast.Constant)
    }


def test_every_count_is_a_promise_that_a_test_keeps() -> None:
    assert named_by_tests() | {"properties"} == COUNTS.keys()


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_is_larger_in_a_soak_and_stands_in_its_promise(name: str) -> None:
    assert COUNTS[name].quick < COUNTS[name].long
    assert COUNTS[name].promise.format(count=12_345, tests=2).startswith("12,345 ")


def test_a_run_takes_the_quick_counts(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, MANY.format(tier="quick", seed=0))
    assert (done.returncode, "4 passed" in done.stdout) == (0, True), done.stdout


def test_a_soak_runs_what_has_a_count_and_has_a_line_for_each_promise(tmp_path: Path) -> None:
    report = tmp_path / "report"
    options = ("-n", "1", "--soak", "7", "--soak-report", str(report))
    done = pytest_run(tmp_path, MANY.format(tier="long", seed=7), *options)
    assert (done.returncode, "3 passed" in done.stdout) == (0, True), done.stdout
    assert report.read_text().splitlines() == [
        "ok    200 kills of writers of records: nothing acknowledged is lost, the chain is whole",
        "ok    2,000 examples of each of 1 other properties",
    ]


def test_a_promise_that_is_not_kept_fails_the_soak_and_says_so(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, BROKEN, "--soak", "7", "--soak-report", str(tmp_path / "report"))
    assert done.returncode == 1
    assert (tmp_path / "report").read_text().startswith("FAIL  200 kills of servers")


def test_a_promise_of_which_not_everything_ran_is_not_kept(tmp_path: Path) -> None:
    cut = BROKEN.replace("assert False", "pytest.exit('enough', 3)").replace("def test_one", "def test_zzz")
    cut += "\ntest_one = test_two\n"
    done = pytest_run(tmp_path, cut, "--soak", "7", "--soak-report", str(tmp_path / "report"))
    assert done.returncode == 3
    assert "ok" not in (tmp_path / "report").read_text().split()


def test_a_promise_that_is_not_in_the_table_stops_the_soak(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, BROKEN.replace("server kills", "unheard of"), "--soak", "7")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "there is no count named 'unheard of'" in done.stdout + done.stderr


def test_children_can_be_interrupted_where_the_run_itself_was_started_in_the_background(
    tmp_path: Path,
) -> None:
    # What a shell without job control does for `pytest &`.
    done = pytest_run(tmp_path, INTERRUPTED, "-n", "1", before="trap '' INT; ")
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not PROC.is_dir(), reason="needs /proc")
def test_a_run_that_leaves_a_process_behind_fails_and_ends_it(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, LEAVING, "-n", "1")
    assert done.returncode == 1
    assert "test_it.py left processes behind" in done.stdout
    assert ": sleep 600" in done.stdout


def test_a_run_begins_with_files_that_are_here() -> None:
    assert [file for file in LONGEST if not (TESTS / file).is_file()] == []


def test_a_table_that_is_taken_for_one_test_runs_every_case_and_names_each_that_fails(tmp_path: Path) -> None:
    apart = pytest_run(tmp_path, TABLES).stdout
    as_one = pytest_run(tmp_path, TABLES, "--tables-as-one", "-rfs").stdout
    assert "15 failed, 9 passed, 2 skipped in " in apart
    assert "2 failed, 4 passed, 2 skipped in " in as_one
    failed = re.findall(r"^FAILED \S+(\[.+?\]) - ", apart, re.MULTILINE)
    assert re.findall(r"in case (\[.+\])$", as_one, re.MULTILINE) == failed
    assert len(failed) == 15
    assert "13 of 16 cases failed" in as_one
    assert "2 of 2 cases failed" in as_one
    assert "1 of 2 cases: [2] not here" in as_one
