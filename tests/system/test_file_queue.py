"""A whole run of the tests: files side by side, each test once, and nothing that fails is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from support import file_queue, processor_times
from support.file_queue import files_of_tests, folder_in_memory, taken_together

HERE = Path(__file__).resolve().parents[1]

NOTING = """
import os, pathlib, pytest

def note(what):
    with (pathlib.Path(__file__).parent / "ran").open("a") as ran:
        ran.write(f"{os.getpid()} {what}\\n")

@pytest.fixture(scope="session", autouse=True)
def noted():
    note("begins")
    yield note
    note("ends")
"""
PASSING = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_passes(number, noted):
    noted(f"{__name__} {number}")
"""


COMMAND = [sys.executable, "-m", "pytest", "-q", "-p", "support.file_queue", "--processes", "2"]


def written(folder: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Write a folder of tests; return the environment to run them in."""
    tests = folder / "tests"
    tests.mkdir()
    for name, text in {"conftest": NOTING, **files}.items():
        (tests / f"{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    return environment


def run(folder: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    environment = written(folder, files)
    return subprocess.run(
        [*COMMAND, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )


def test_every_test_of_every_file_runs_once(tmp_path: Path) -> None:
    done = run(tmp_path, **{f"test_{number}": PASSING for number in range(6)}, test_empty="")
    assert done.returncode == 0, done.stdout
    assert "18 passed in " in done.stdout
    lines = (tmp_path / "tests" / "ran").read_text().splitlines()
    ran = sorted(line.partition(" ")[2] for line in lines if "test_" in line)
    assert ran == [f"test_{file} {number}" for file in range(6) for number in range(3)]
    # What lasts for a run is begun once in each process, and ended.
    assert lines.count(f"{lines[0].split()[0]} begins") == 1
    assert sum("begins" in line for line in lines) == sum("ends" in line for line in lines)


def test_the_files_of_a_package_share_what_lasts_for_it(tmp_path: Path) -> None:
    package = tmp_path / "tests" / "package"
    fixture = "import pytest\n\n@pytest.fixture(scope='package')\ndef shared(noted): noted('shared begins')\n"
    environment = written(tmp_path, {f"test_{number}": PASSING for number in range(3)})
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "conftest.py").write_text(fixture)
    for number in range(3):
        (package / f"test_{number}.py").write_text("def test_passes(shared): pass\n")
    done = subprocess.run(COMMAND, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=environment)
    assert "12 passed in " in done.stdout
    assert (tmp_path / "tests" / "ran").read_text().count("shared begins") == 1


def test_what_fails_is_shown_and_the_rest_runs(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        test_fails="def test_a(): assert 1 == 2\n\ndef test_b(): pass\n",
        test_broken="import nothing_of_this_name\n",
        test_unready=(
            "import pytest\n\n@pytest.fixture\ndef broken(): raise ValueError\n\ndef test_c(broken): pass\n"
        ),
        test_skips="import pytest\n\ndef test_d(): pytest.skip('why')\n",
        test_passes=PASSING,
    )
    assert done.returncode == 1
    assert "1 failed, 4 passed, 1 skipped, 2 error in " in done.stdout
    assert "assert 1 == 2" in done.stdout
    assert "nothing_of_this_name" in done.stdout


def test_a_process_that_dies_fails_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, test_dies="import os\n\ndef test_a(): os._exit(0)\n", test_passes=PASSING)
    assert done.returncode == 1
    assert "ended before its time" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_what_failed_and_leaves_no_process(tmp_path: Path, number: int) -> None:
    waiting = "import time\n\ndef test_b(noted):\n    noted('waits')\n    time.sleep(60)\n"
    files = {"test_a_fails": "def test_a(): assert 1 == 2\n", "test_b": waiting, "test_c": waiting}
    ran = tmp_path / "tests" / "ran"
    with subprocess.Popen(
        COMMAND, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=written(tmp_path, files)
    ) as process:
        deadline = time.monotonic() + 60
        # Both wait: by then the first file has failed.
        while not (ran.exists() and ran.read_text().count("waits") == 2) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        shown, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "assert 1 == 2" in shown


@pytest.mark.parametrize("option", ["tests/test_passes.py", "-kx", "--collect-only"])
def test_who_chooses_tests_is_told_to_do_so_elsewhere(tmp_path: Path, option: str) -> None:
    done = run(tmp_path, option, test_passes=PASSING)
    assert done.returncode == 4
    assert "--processes runs everything" in done.stderr


def test_a_run_without_tests_is_no_success(tmp_path: Path) -> None:
    assert run(tmp_path).returncode == 5


def test_programs_that_run_as_a_different_user_reach_what_tests_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    reached = "import os, tempfile\n\ndef test_e(): assert os.stat(tempfile.gettempdir()).st_mode & 0o001\n"
    assert run(tmp_path, test_reached=reached).returncode == 0


def test_the_queue_has_the_longest_files_first_and_none_twice() -> None:
    found = files_of_tests(HERE)
    assert found[0] == HERE / "conformance" / "test_suite.py"
    assert len(found) == len(set(found))
    together = taken_together(found)
    assert sorted(file for some in together for file in some) == sorted(found)
    assert [{file.parent.name for file in some} for some in together if len(some) > 1] == [{"browser"}]


def test_the_processor_times_of_all_processes_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "1.times").write_text('{"rest": 1.5, "test_a.py": 2}')
    (tmp_path / "2.times").write_text('{"rest": 1, "test_b.py": 4}')
    assert list(processor_times.lines(processor_times.of_all(tmp_path))) == [
        "     8.5 s in all",
        "     4.0 s  test_b.py",
        "     2.5 s  rest",
        "     2.0 s  test_a.py",
    ]


def test_files_of_tests_are_in_memory_only_where_there_is_room_and_programs_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(file_queue, "_MEMORY", tmp_path)
    monkeypatch.setattr(file_queue, "_ROOM", 1)
    assert folder_in_memory() == tmp_path
    monkeypatch.setattr(file_queue, "_ROOM", 1 << 60)
    assert folder_in_memory() is None
    monkeypatch.setattr(file_queue, "_ROOM", 1)
    with monkeypatch.context() as cannot_start:
        cannot_start.setattr(Path, "chmod", lambda _path, _mode: None)  # as in a file system without programs
        assert folder_in_memory() is None
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # whoever names a place means it
    assert folder_in_memory() is None
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(file_queue, "_MEMORY", tmp_path / "none")
    assert folder_in_memory() is None
