"""`portbook check`: all that a start would refuse or warn of, as text and as JSON, and its exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.portbook_process import environment, run

BROKEN = """\
[server]
allowed_hosts = ["http://x"]
[python]
toolsets = ["nowhere.py", "broken.py"]
[envelope]
signing_key = "signing.pem"
[redaction]
patterns = ["("]
[[policy.rules]]
name = "r"
action = "denny"
[http.shop]
openapi = "none.json"
[http.books]
base_url = 5
"""
PLACES = ["2:18", "4:13", "6:1", "8:13", "11:1", "13:1", "15:1"]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    (tmp_path / "portbook.toml").write_text(BROKEN)
    (tmp_path / "broken.py").write_text("from portbook import Toolset\nx = (\n")
    return tmp_path


def test_everything_that_serve_would_refuse_is_told_at_once(broken: Path) -> None:
    finished = run("check", cwd=broken)
    lines = finished.out.decode().splitlines()
    assert finished.code == 2
    assert finished.err == "portbook: 8 errors, 0 warnings\n"
    assert all(": error: " in line for line in lines)
    wanted = [f"portbook.toml:{place}" for place in PLACES]
    assert sorted(line.partition(": ")[0] for line in lines) == sorted(["broken.py:2:5", *wanted])


def test_serve_and_every_verb_before_it_refuse_the_same(broken: Path) -> None:
    told = [line.replace(": error: ", ": ", 1) for line in run("check", cwd=broken).out.decode().splitlines()]
    for verb in (["serve", "--stdio"], ["tools"], ["explain", "x"], ["call", "x"]):
        finished = run(*verb, cwd=broken)
        assert finished.code == 2, verb
        assert finished.err.splitlines() == [f"portbook: error: {line}" for line in told], verb


def test_json_has_file_line_and_column(broken: Path) -> None:
    finished = run("check", "--json", cwd=broken)
    said = json.loads(finished.out)
    assert (finished.code, finished.err, said["ok"], said["warnings"]) == (2, "", False, [])
    assert said["errors"][0] == {
        "file": "portbook.toml",
        "line": 2,
        "column": 18,
        "message": 'server.allowed_hosts[0] can be no Host; one looks like "mcp.example.com" or '
        '"10.0.0.5:8765"',
    }


@pytest.mark.parametrize(
    ("value", "problem"),
    [(None, "is not set"), ("", "is empty"), ("abc12", "has fewer than 6 characters")],
)
def test_warnings_alone_exit_with_one(value: str | None, problem: str, tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text('[redaction]\nsecrets = ["A_KEY"]\n')
    given = {} if value is None else {"A_KEY": value}
    finished = run("check", cwd=tmp_path, env=environment(**given))
    assert finished.code == 1
    assert finished.out.decode() == (
        f"portbook.toml:2:1: warning: the environment variable A_KEY {problem}; its value is not redacted\n"
    )
    assert json.loads(run("check", "--json", cwd=tmp_path).out)["ok"] is True


def test_nothing_to_say_exits_with_zero_and_writes_nothing(tmp_path: Path) -> None:
    finished = run("check", cwd=tmp_path)
    assert (finished.code, finished.out) == (0, b"")
    assert finished.err == "portbook: nothing to say; `portbook serve` would serve 1 tool\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    (tmp_path / "portbook.toml").write_text('[audit]\nlog_dir = "closed/runs"\n')
    finished = run("check", cwd=tmp_path)
    assert finished.code == 2
    assert finished.out.startswith(b"portbook.toml:2:1: error: audit.log_dir cannot be written below ")


def test_a_file_in_the_way_of_the_records_is_told(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    (tmp_path / "portbook.toml").write_text('[audit]\nlog_dir = "runs"\n')
    finished = run("check", cwd=tmp_path)
    assert finished.code == 2
    assert finished.out.startswith(b"portbook.toml:2:1: error: audit.log_dir cannot be written below ")


SEVERAL = """\
[server]
prot = 1
port = "x"
[http.shop]
base_url = "https://shop.example"
bearr = "x"
timeout_ms = "a"
[http.shop.tools.a]
method = "GETT"
effct = "read"
[http.shop.tools.b]
method = "GETT"
path = "x"
[mcp.box]
command = ["true"]
trst = "x"
start = "never"
[mcp.bax]
command = 5
[[policy.rules]]
name = 5
action = "x"
tools = "x"
[[policy.rules]]
name = "z"
action = "deny"
effects = ["reed"]
approver = "nobody"
"""


def test_every_problem_of_a_table_is_told_and_none_that_only_follows_from_another(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(SEVERAL)
    finished = run("check", "--json", cwd=tmp_path)
    lines = [each["line"] for each in json.loads(finished.out)["errors"]]
    assert sorted(lines) == [2, 3, 6, 7, 9, 10, 12, 16, 17, 19, 21, 22, 23, 27, 28]


def test_a_document_that_is_missing_is_told_alone(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(
        '[http.shop]\nopenapi = "none.json"\n[http.shop.tools.list]\neffect = "read"\n'
    )
    [error] = json.loads(run("check", "--json", cwd=tmp_path).out)["errors"]
    assert (error["line"], "none.json" in error["message"]) == (2, True)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            '[server]\nhost = "http://localhost"\n',
            "2:1: error: server.host must be an address or a name, without http:// and without a port",
        ),
        ('[server]\nhost = "999.1.1.1"\n', "2:1: error: server.host must be an address or a name"),
        ('[server]\nsocket = "no/where"\n', "2:1: error: server.socket is in a folder that does not exist"),
        ('[server]\nsocket = "portbook.toml"\n', "2:1: error: server.socket is a file that is no socket"),
        ('[store]\npath = "."\n', "2:1: warning: store.path: {folder}: cannot be opened"),
        ('[store]\npath = "portbook.toml"\n', "2:1: warning: store.path: {folder}/portbook.toml: damaged"),
        ('[schemas]\nroot = "nowhere"\n', "2:1: warning: schemas.root is not a folder"),
        ('[assets]\nschemas = "nowhere"\n', "2:1: warning: assets.schemas: nowhere: cannot be read"),
        ('[assets]\nexamples = "nowhere"\n', "2:1: warning: assets.examples: nowhere: cannot be read"),
        ("[keys]\nrequired = true\n", "2:1: warning: a key is required and none exists"),
        ('[server]\nhost = "0.0.0.0"\n', "2:1: warning: a key is required and none exists"),
        ('schema_override_uri = "no.json"\n', "1:1: warning: the schema override is ignored"),
        (
            '[mcp.shop]\ncommand = ["sh"]\ncwd = "nowhere"\n',
            "3:1: warning: mcp.shop.cwd is not a folder; create it, or correct the path",
        ),
    ],
)
def test_what_the_settings_name_and_cannot_be_used_is_told_with_its_place(
    settings: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "portbook.toml").write_text(settings)
    finished = run("check", cwd=tmp_path)
    wanted = f"portbook.toml:{told.replace('{folder}', str(tmp_path))}"
    assert any(line.startswith(wanted) for line in finished.out.decode().splitlines()), finished.out
    assert finished.code == (2 if ": error: " in told else 1)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ('[server]\nhost = "999.1.1.1"\n', "2:1: server.host must be an address or a name"),
        ('[server]\nhost = "192.0.2.1"\n', "2:1: server.host cannot be listened at: "),
        ('[server]\nsocket = "no/where"\n', "2:1: server.socket is in a folder that does not exist"),
    ],
)
def test_serve_refuses_an_address_with_the_place_of_its_setting(
    settings: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "portbook.toml").write_text(settings)
    finished = run("serve", "--http", cwd=tmp_path)
    assert finished.err.startswith(f"portbook: error: portbook.toml:{told}"), finished.err
    assert finished.code == 2


def test_a_toolset_with_nothing_in_it_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text('from portbook import Toolset\n\ntoolset = Toolset("x")\n')
    finished = run("check", "mine.py", cwd=tmp_path)
    said = "mine.py:1:1: warning: its toolset has nothing in it; declare a tool with @toolset.tool\n"
    assert (finished.code, finished.out.decode()) == (1, said)


@pytest.mark.parametrize("patterns", [[], ["("]], ids=["usable", "unusable"])
@pytest.mark.parametrize("verb", [["check"], ["serve", "--stdio"], ["tools"]], ids=lambda verb: verb[0])
def test_secrets_in_what_a_toolset_raises_are_not_told(
    tmp_path: Path, verb: list[str], patterns: list[str]
) -> None:
    (tmp_path / "portbook.toml").write_text(
        f'[redaction]\nsecrets = ["LOGIN"]\npatterns = {json.dumps(patterns)}\n'
    )
    raising = (
        "import os\nraise RuntimeError('no ' + os.environ['LOGIN'] + ' and password=hunter2hunter2 here')\n"
    )
    (tmp_path / "tools.py").write_text(raising)
    finished = run(*verb, "tools.py", cwd=tmp_path, env=environment(LOGIN="a-known-secret"))
    said = finished.out.decode() + finished.err
    assert finished.code == 2
    assert "tools.py:2:1" in said
    assert "RuntimeError: no [redacted] and password=[redacted] here; correct this line" in said
    assert "a-known-secret" not in said
    assert "hunter2" not in said


def test_redaction_that_is_switched_off_leaves_what_a_toolset_raises(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text("[redaction]\nenabled = false\n")
    (tmp_path / "tools.py").write_text("raise RuntimeError('password=hunter2hunter2')\n")
    assert "RuntimeError: password=hunter2hunter2;" in run("check", "tools.py", cwd=tmp_path).out.decode()
