"""SIGHUP: the rules of the settings file as it is now come into force, or the old ones stay."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from portbook.stores.caller_keys import digest_of_key
from support.portbook_process import HttpServer, http_server

TOOLS = """
import time
from pathlib import Path
from portbook import Toolset

toolset = Toolset("reloaded")

@toolset.tool(effect="read")
def look() -> dict[str, str]:
    return {"nickname": "x", "plain": "y"}

@toolset.tool(effect="read")
def wait_for(path: str) -> dict[str, str]:
    flag = Path(path)
    flag.touch()
    while flag.exists():
        time.sleep(0.005)
    return {"nickname": "x"}
"""

SETTINGS = '[python]\ntoolsets = ["tools.py"]\n[docs]\nenabled = false\n'
DENYING = SETTINGS + '[[policy.rules]]\nname = "not now"\ntools = ["look"]\naction = "deny"\n'


@dataclass(frozen=True)
class Served:
    server: HttpServer
    folder: Path

    def execute(self, tool: str = "look", args: Any = None, **headers: str) -> Any:
        body = json.dumps({"session_id": "s", "tool_id": tool, "args": args or {}}).encode()
        response = self.server.request("/execute", body, content_type="application/json", **headers)
        return response.json

    def reason(self, **headers: str) -> str:
        answer = self.execute(**headers)
        return "OK" if answer["error"] is None else str(answer["error"]["details"]["reason"])

    def reload(self, text: str, lines: int = 1) -> str:
        """Write the settings, send the signal, and return what was said about it: so many lines."""
        (self.folder / "portbook.toml").write_text(text)
        return self.signal(lines)

    def signal(self, lines: int) -> str:
        self.server.process.send_signal(signal.SIGHUP)
        stderr = self.server.process.stderr
        assert stderr is not None
        return "".join(stderr.readline().decode() for _ in range(lines))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(SETTINGS)
    with http_server(cwd=tmp_path, tools=()) as server:
        yield Served(server, tmp_path)


GOOD = "portbook: reloaded policy, keys and redaction; restart to change tools\n"
KEPT = "portbook: reload failed; the old rules stay in force\n"


@pytest.mark.covers("002.reload.good")
def test_a_good_file_takes_effect_without_a_restart(served: Served) -> None:
    assert served.reason() == "OK"
    assert served.reload(DENYING) == GOOD
    assert served.reason() == "POLICY_VIOLATION"
    assert served.reload(SETTINGS) == GOOD
    assert served.reason() == "OK"


@pytest.mark.covers("002.reload.bad")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[policy\n", "not TOML", id="not TOML"),
        pytest.param("[policy]\nmax_attempt = 1\n", ":2:1: unknown setting", id="an unknown key"),
        pytest.param(
            '[[policy.rules]]\nname = "a"\naction = "allow"\ntools = ["A"]\n',
            ":4:10: policy.rules[0].tools[0]",
            id="a bad pattern",
        ),
        pytest.param('[redaction]\npatterns = ["("]\n', "redaction.patterns[0]", id="a bad redaction"),
        pytest.param('[keys]\nallow = ["x"]\n', "[[keys.allow]]", id="a bad key"),
    ],
)  # fmt: skip
def test_a_bad_file_keeps_the_old_rules_and_says_what_is_wrong(served: Served, text: str, said: str) -> None:
    served.reload(DENYING)
    told = served.reload(text, lines=2)
    assert told.startswith("portbook: error: portbook.toml:")
    assert said in told
    assert told.endswith(KEPT)
    assert served.reason() == "POLICY_VIOLATION"
    assert served.reload(SETTINGS) == GOOD  # and it goes on
    assert served.reason() == "OK"


def test_a_file_that_has_gone_keeps_the_old_rules_where_it_was_named(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    path = tmp_path / "portbook.toml"
    path.write_text(DENYING)
    with http_server("--config", str(path), cwd=tmp_path, tools=()) as server:
        served = Served(server, tmp_path)
        path.unlink()
        server.process.send_signal(signal.SIGHUP)
        assert server.process.stderr is not None
        assert b"cannot be read" in server.process.stderr.readline()
        assert served.reason() == "POLICY_VIOLATION"


def test_a_server_without_a_settings_file_says_where_to_write_one(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    with http_server(cwd=tmp_path, tools=("tools.py",)) as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.process.stderr is not None
        said = [server.process.stderr.readline().decode() for _ in range(2)]
        remedy = "write portbook.toml where the server was started, or start it with --config"
        assert said == [f"portbook: error: there is no settings file; {remedy}\n", KEPT]


def test_keys_and_redaction_are_reloaded_too(served: Served) -> None:
    key = f'[[keys.allow]]\nname = "ada"\nsha256 = "{digest_of_key("ada")}"\ntools = ["look"]\n'
    assert served.reason(authorization="Bearer wrong") == "OK"  # nobody has a key, so none is looked at
    assert served.reload(SETTINGS + key) == GOOD
    assert served.reason(authorization="Bearer wrong") == "UNAUTHORIZED"
    assert served.reason(authorization="Bearer ada") == "OK"
    assert served.execute()["result"]["nickname"] == "x"
    assert served.reload(SETTINGS + '[redaction]\nkeys = ["nickname"]\n') == GOOD
    assert served.execute()["result"] == {"nickname": "[redacted]", "plain": "y"}


def test_keys_that_become_required_are_and_the_page_asks_for_one(served: Served) -> None:
    assert b'data-calls-need-key="no"' in served.server.request("/").body
    assert served.reload(SETTINGS + "[keys]\nrequired = true\n") == GOOD
    assert served.reason() == "UNAUTHORIZED"
    assert served.server.request("/tools").status == 401
    assert b'data-calls-need-key="yes"' in served.server.request("/").body
    assert served.reload(SETTINGS) == GOOD
    assert served.reason() == "OK"


def test_what_is_secret_by_the_time_a_call_ends_does_not_leave_with_its_result(served: Served) -> None:
    flag = served.folder / "flag"
    answers: list[Any] = []
    calling = threading.Thread(target=lambda: answers.append(served.execute("wait_for", {"path": str(flag)})))
    calling.start()
    while not flag.exists():
        time.sleep(0.005)
    hiding = SETTINGS + '[redaction]\nkeys = ["nickname"]\n'
    assert served.reload(hiding) == GOOD
    assert served.execute()["result"]["nickname"] == "[redacted]"
    flag.unlink()
    calling.join(30)
    assert answers[0]["result"] == {"nickname": "[redacted]"}


def test_a_file_that_is_gone_or_empty_keeps_the_old_rules(served: Served) -> None:
    assert served.reload("# nothing\n", 2).endswith(KEPT)
    assert served.reload("", 2).endswith(KEPT)
    (served.folder / "portbook.toml").unlink()
    assert served.signal(2).endswith(KEPT)
    assert served.reason() == "OK"


def test_tools_stay_what_they_were(served: Served) -> None:
    (served.folder / "tools.py").write_text(TOOLS.replace("def look", "def peek"))
    assert served.reload(SETTINGS) == GOOD
    assert served.reason() == "OK"
