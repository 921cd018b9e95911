"""The same call gets the same verdict through every door and dialect, and what is denied runs nowhere.

One table of cases drives them all: every door of one process, and the HTTP doors of workers, and of nodes
behind a load balancer; there, every run takes each case through one of them, and a soak through all.
`upstream` is an API of the tests' own; the functions leave a line in a file when they run: after a denial
neither has seen anything.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.counts import COUNTS, count
from support.deployments import DEPLOYMENTS, ONE_PROCESS, store_of
from support.every_door import DOORWAYS, HTTP_DOORWAYS, Asked, Doorway, Verdict, leading_to, leads_to
from support.portbook_process import HttpServer, run
from support.threaded_api import Upstream, upstream

KEYS = {"ada": "key of ada", "bob": "key of bob", "guest": "key of a guest"}

# A door of each deployment: STDIO has one process.
PLACES = [
    (deployment, door)
    for deployment in DEPLOYMENTS
    for door in (DOORWAYS if deployment == ONE_PROCESS else HTTP_DOORWAYS)
]


def places_of(number: int) -> Iterator[tuple[str, str]]:
    """Where the case of a number is tried: at each door of one process, and of others at as many as count.

    The doors take turns, so that each is used.
    """
    for shift, deployment in enumerate(DEPLOYMENTS):
        if deployment == ONE_PROCESS:
            yield from ((deployment, door) for door in DOORWAYS)
        else:
            for turn in range(count("doors of deployments")):
                yield deployment, HTTP_DOORWAYS[(number + shift + turn) % len(HTTP_DOORWAYS)]


TOOLS = """
import time
from pathlib import Path
from portbook import Toolset

toolset = Toolset("verdicts")
RAN = Path(__file__).with_name("ran")

def ran(name: str) -> None:
    with RAN.open("a") as file:
        file.write(name + "\\n")

@toolset.tool(effect="read")
def look(text: str = "") -> dict[str, int]:
    ran("look")
    return {"length": len(text)}

@toolset.tool(effect="write")
def refund(cents: int = 20000) -> dict[str, int]:
    ran("refund")
    return {"cents": cents}

@toolset.tool(effect="destructive")
def wipe(what: str = "") -> dict[str, str]:
    ran("wipe")
    return {"wiped": what}

@toolset.tool(effect="read", timeout_ms=60000)
def slow() -> dict[str, str]:
    time.sleep(30)
    return {}

@toolset.tool(effect="read")
def secretive() -> dict[str, str]:
    ran("secretive")
    return {"password": "hunter2 hunter2", "plain": "yes"}
"""

POLICY = """
[python]
toolsets = ["tools.py"]

[docs]
enabled = false

[policy]
allowed_domains = ["127.0.0.1:{port}"]
allowed_methods = ["GET", "POST"]
max_payload_bytes = 100
max_execution_timeout_ms = 800
max_attempts = 3

[[policy.rules]]
name = "large refunds need a person"
tools = ["refund"]
action = "ask"
where = {{ "/cents" = {{ minimum = 10000 }} }}

[[policy.rules]]
name = "nothing destructive"
effects = ["destructive"]
action = "deny"

[[policy.rules]]
name = "bob only looks"
callers = ["bob"]
tools = ["refund", "orders.*"]
action = "deny"

[[policy.rules]]
name = "not at night"
sessions = ["night-*"]
action = "deny"

[keys]
allow = [
  {{ name = "ada", sha256 = "{ada}" }},
  {{ name = "bob", sha256 = "{bob}" }},
  {{ name = "guest", sha256 = "{guest}", tools = ["look"] }},
]

[http.orders]
base_url = "http://127.0.0.1:{port}"
[http.orders.tools.get]
method = "GET"
path = "/orders/{{id}}"
input = {{ type = "object", required = ["id"], properties = {{ id = {{ type = "string" }} }} }}
[http.orders.tools.add]
method = "POST"
path = "/orders"
effect = "read"
input = {{ type = "object" }}
[http.orders.tools.remove]
method = "DELETE"
path = "/orders/{{id}}"
effect = "read"
input = {{ type = "object", required = ["id"], properties = {{ id = {{ type = "string" }} }} }}

[http.elsewhere]
base_url = "http://localhost:{port}"
[http.elsewhere.tools.get]
method = "GET"
path = "/orders"
input = {{ type = "object" }}
"""


class Case(NamedTuple):
    name: str
    asked: Asked
    reason: str
    key: str | None = None
    runs: int = 0
    """How many functions run, and how many requests go out."""


AT_THE_CAP = {"text": "x" * (100 - len('{"text":""}'))}
OVER_THE_CAP = {"text": AT_THE_CAP["text"] + "x"}

CASES = [
    Case("a function that may run", Asked("look"), "OK", runs=1),
    Case("a listed domain", Asked("orders.get", {"id": "7"}), "OK", runs=1),
    Case("a domain that is not listed", Asked("elsewhere.get"), "POLICY_VIOLATION"),
    Case("a listed verb", Asked("orders.add", {"a": 1}), "OK", runs=1),
    Case("a verb that is not listed", Asked("orders.remove", {"id": "7"}), "POLICY_VIOLATION"),
    Case("as large as the cap", Asked("look", AT_THE_CAP), "OK", runs=1),
    Case("larger than the cap", Asked("look", OVER_THE_CAP), "PAYLOAD_TOO_LARGE"),
    Case("the last attempt", Asked("look", attempt=3), "OK", runs=1),
    Case("one attempt more", Asked("look", attempt=4), "POLICY_VIOLATION"),
    Case("over the time limit", Asked("slow"), "TIMEOUT"),
    Case("an effect that is denied", Asked("wipe", {"what": "all"}), "POLICY_VIOLATION"),
    Case("an argument below the rule's", Asked("refund", {"cents": 9999}), "OK", runs=1),
    Case("an argument that needs a person", Asked("refund", {"cents": 10000}), "APPROVAL_REQUIRED"),
    Case("a default that needs a person", Asked("refund"), "APPROVAL_REQUIRED"),
    Case("a caller that is denied", Asked("refund", {"cents": 1}), "POLICY_VIOLATION", KEYS["bob"]),
    Case(
        "a caller that is denied the API", Asked("orders.get", {"id": "7"}), "POLICY_VIOLATION", KEYS["bob"]
    ),
    Case("another caller", Asked("refund", {"cents": 1}), "OK", KEYS["ada"], runs=1),
    Case("a session that is denied", Asked("look", session="night-1"), "POLICY_VIOLATION"),
    Case("wrong arguments", Asked("look", {"txt": "a"}), "BAD_ARGUMENTS"),
    Case("wrong arguments and denied", Asked("wipe", {"whom": 1}), "POLICY_VIOLATION"),
    Case("wrong arguments that would need a person", Asked("refund", {"cents": "much"}), "BAD_ARGUMENTS"),
    Case("an unknown tool", Asked("nothing"), "UNKNOWN_TOOL"),
    Case("a tool in the key's scope", Asked("look"), "OK", KEYS["guest"], runs=1),
    Case("a tool beyond the key's scope", Asked("refund", {"cents": 1}), "UNKNOWN_TOOL", KEYS["guest"]),
    Case("a wrong key", Asked("look"), "UNAUTHORIZED", "not a key"),
    Case("a secret in the result", Asked("secretive"), "OK", runs=1),
]


class Served:
    """One folder with its settings, and doors to it that are opened when first used."""

    def __init__(self, folder: Path, api: Upstream, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self.api = api
        self._stack = stack
        self._open: dict[tuple[str, str | None], Doorway] = {}
        self.server: HttpServer | None = None
        """What the HTTP doors have to lead to, if not to a server of their own."""

    def ask(self, door: str, asked: Asked, key: str | None = None) -> Verdict:
        if (door, key) not in self._open:
            assert self.server is None or leads_to(self.folder) is self.server
            self._open[door, key] = self._stack.enter_context(DOORWAYS[door](self.folder, key))
        return self._open[door, key](asked)

    def ran(self) -> int:
        path = self.folder / "ran"
        return len(self.api.seen) + (path.read_text().count("\n") if path.exists() else 0)


@contextlib.contextmanager
def serving(folder: Path, settings: str) -> Iterator[Served]:
    with contextlib.ExitStack() as stack:
        api = stack.enter_context(upstream())
        digests = {name: _digest(key) for name, key in KEYS.items()}
        (folder / "tools.py").write_text(TOOLS)
        (folder / "portbook.toml").write_text(settings.format(port=api.port, **digests))
        yield Served(folder, api, stack)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


class Deployed:
    """What serves under some settings in each deployment, started when it is first used."""

    def __init__(
        self,
        settings: str,
        request: pytest.FixtureRequest,
        factory: pytest.TempPathFactory,
        stack: contextlib.ExitStack,
    ) -> None:
        self._settings = settings
        self._request = request
        self._factory = factory
        self._stack = stack
        self._served: dict[str, Served] = {}

    def __getitem__(self, name: str) -> Served:
        if name not in self._served:
            deployment, enter = DEPLOYMENTS[name], self._stack.enter_context
            store = enter(store_of(deployment, self._request))
            # The doors are closed before the server is, and that before its store.
            server = enter(contextlib.ExitStack())
            served = enter(serving(self._factory.mktemp("verdicts"), self._settings + store))
            served.server = server.enter_context(deployment.serve(served.folder))
            enter(leading_to(served.folder, served.server))
            self._served[name] = served
        return self._served[name]


@pytest.fixture(scope="module")
def deployed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with contextlib.ExitStack() as stack:
        yield Deployed(POLICY, request, tmp_path_factory, stack)


@pytest.fixture
def served(deployed: Deployed, deployment: str) -> Served:
    return deployed[deployment]


everywhere = pytest.mark.parametrize(
    ("deployment", "door"), PLACES, ids=[f"{door}, {deployment}" for deployment, door in PLACES]
)
every_door = pytest.mark.parametrize("door", DOORWAYS)


TRIED = [(*place, case) for number, case in enumerate(CASES) for place in places_of(number)]


def test_every_door_of_every_deployment_is_tried_and_a_soak_tries_every_case_at_each() -> None:
    assert {(deployment, door) for deployment, door, _ in TRIED} == {*PLACES}
    assert COUNTS["doors of deployments"].long == len(HTTP_DOORWAYS)


@pytest.mark.covers("002.policy.every-door")
@pytest.mark.covers("021.deployments.verdicts")
@pytest.mark.soak("doors of deployments")
@pytest.mark.parametrize(
    ("deployment", "door", "case"),
    TRIED,
    ids=[f"{case.name}-{door}, {deployment}" for deployment, door, case in TRIED],
)
def test_a_call_gets_the_same_verdict_through_every_door_and_a_denied_one_runs_nowhere(
    served: Served, door: str, case: Case
) -> None:
    before = served.ran()
    assert served.ask(door, case.asked, case.key) == Verdict(case.reason)
    assert served.ran() - before == case.runs


@everywhere
def test_a_refusal_by_policy_names_its_rule_and_a_result_has_no_secret_through_every_door(
    served: Served, door: str
) -> None:
    assert served.ask(door, Asked("wipe")).details["rule"] == "nothing destructive"
    answer = served.ask(door, Asked("secretive"))
    assert answer.result == {"password": "[redacted]", "plain": "yes"}
    assert b"hunter2" not in answer.raw


CALLERS = ", ".join(
    f'{{{{ name = "caller-{at}", sha256 = "{_digest(door)}" }}}}' for at, door in enumerate(DOORWAYS)
)
RATES = f"""
[python]
toolsets = ["tools.py"]
[policy]
max_calls_per_minute = 2
[keys]
allow = [{CALLERS}]
"""


@pytest.fixture(scope="module")
def limiting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Two calls for each caller; each door has a caller of its own, whose key is the name of the door."""
    with contextlib.ExitStack() as stack:
        yield Deployed(RATES, request, tmp_path_factory, stack)


@pytest.mark.covers("002.policy.rate")
@everywhere
def test_a_caller_that_makes_too_many_calls_is_told_when_to_come_back(
    limiting: Deployed, deployment: str, door: str
) -> None:
    served = limiting[deployment]
    before = served.ran()
    assert [served.ask(door, Asked("look"), door).reason for _ in range(2)] == ["OK", "OK"]
    third = served.ask(door, Asked("look"), door)
    assert third.reason == "RATE_LIMITED"
    assert 1 <= third.details["retry_after_s"] <= 30
    assert served.ran() - before == 2


REDACTION = """
[python]
toolsets = ["tools.py"]
[policy]
require_redaction = true
[redaction]
enabled = {enabled}
"""


@pytest.fixture(scope="module")
def redacting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(
        tmp_path_factory.mktemp("redaction"), REDACTION.replace("{enabled}", request.param)
    ) as served:
        yield served


@pytest.mark.covers("002.policy.redaction")
@every_door
@pytest.mark.parametrize(
    ("redacting", "reason"), [("true", "OK"), ("false", "POLICY_VIOLATION")], indirect=["redacting"]
)
def test_nothing_runs_without_redaction_where_policy_requires_it(
    redacting: Served, door: str, reason: str
) -> None:
    before = redacting.ran()
    assert redacting.ask(door, Asked("look")).reason == reason
    assert redacting.ran() - before == (reason == "OK")


def _details(verdict: Verdict) -> dict[str, Any]:
    return {name: verdict.details[name] for name in ("approval_id", "expires_at")}


@pytest.mark.covers("002.approval.every-door")
@everywhere
def test_what_needs_a_person_says_so_with_the_same_details_and_is_redeemed_through_every_door(
    served: Served, door: str
) -> None:
    before = served.ran()
    cents = 50_000 + 10 * list(DOORWAYS).index(door)  # each door asks for an approval of its own
    asked = Asked("refund", {"cents": cents})
    first = served.ask(door, asked)
    assert first.reason == "APPROVAL_REQUIRED"
    ticket = _details(first)
    again = served.ask(door, asked)
    assert _details(again) == ticket  # asking twice is asking for the same
    approval = str(ticket["approval_id"])
    redeeming = Asked("refund", {"cents": cents}, approval=approval)
    assert served.ask(door, redeeming).reason == "APPROVAL_REQUIRED"
    assert run("approvals", "approve", approval, cwd=served.folder).code == 0
    changed = Asked("refund", {"cents": cents + 1}, approval=approval)
    assert served.ask(door, changed).reason == "APPROVAL_REFUSED"
    assert served.ran() == before
    assert served.ask(door, redeeming).result == {"cents": cents}
    assert served.ask(door, redeeming).reason == "APPROVAL_REFUSED"
    assert served.ran() - before == 1
