"""Settings to the rules in force: what each one governs, and where a mistake in them stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.app.rules_from_settings import policy_of, rules_of
from portbook.app.start_warnings import OPERATOR_KEY
from portbook.errors import Reason, Refused
from portbook.policy import Action, PolicyInput, decide
from portbook.settings import BadSettings, Settings, load_settings
from portbook.stages.rules_in_force import Rules
from portbook.stores.caller_keys import ANONYMOUS, AllowedKey, digest_of_key
from portbook.tools.http_operation import HttpOperation
from portbook.tools.spec import Effect, ToolSpec

CANARY = "canary-4711"


def settings_of(folder: Path, text: str) -> Settings:
    (folder / "portbook.toml").write_text(text)
    return load_settings(None, {}, {}, folder)


def governed(folder: Path, text: str = "", environ: dict[str, str] | None = None, **given: Any) -> Rules:
    settings = settings_of(folder, text)
    return rules_of(settings, [], environ or {}, **{"is_exposed": False, **given})


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(BadSettings) as raised:
        governed(folder, text)
    return str(raised.value)


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def test_with_nothing_written_everything_runs_and_secrets_are_taken_out(tmp_path: Path) -> None:
    rules = governed(tmp_path)
    call = PolicyInput("wipe", Effect.DESTRUCTIVE, "anonymous", {}, {}, 2)
    assert decide(rules.policy, call).action is Action.ALLOW
    assert not rules.policy.can_ask
    assert rules.callers.identify(None) is ANONYMOUS
    assert rules.rates.take("anonymous", 0.0) is None
    assert rules.redactor is not None
    assert rules.redactor.redact({"password": "x"}) == ({"password": "[redacted]"}, True)
    assert (rules.on_audit_failure, rules.records_arguments, rules.timeout_ms) == ("refuse", False, 30_000)


def test_every_setting_that_governs_calls_is_heeded(tmp_path: Path) -> None:
    rules = governed(
        tmp_path,
        """
[execution]
timeout_ms = 7
[audit]
on_failure = "warn"
arguments = true
[policy]
allowed_methods = ["get"]
max_payload_bytes = 10
max_execution_timeout_ms = 5
max_attempts = 3
max_calls_per_minute = 1
default = "deny"
approval = "always"
[redaction]
enabled = false
""",
    )
    assert (rules.on_audit_failure, rules.records_arguments, rules.timeout_ms) == ("warn", True, 7)
    assert rules.redactor is None
    policy = rules.policy
    limits = policy.limits
    assert policy.methods == {"GET"}
    assert (limits.max_payload_bytes, limits.max_execution_timeout_ms, limits.max_attempts) == (10, 5, 3)
    assert (limits.default, limits.approval, policy.can_ask) == ("deny", "always", True)
    assert [rules.rates.take("ada", 0.0) for _ in range(2)] == [None, 60]


@pytest.mark.parametrize(
    ("text", "is_missing"),
    [
        case("required and on", "[policy]\nrequire_redaction = true", False),
        case("required and off", "[policy]\nrequire_redaction = true\n[redaction]\nenabled = false", True),
        case("off", "[redaction]\nenabled = false", False),
    ],
)
def test_redaction_is_missing_only_where_it_is_required_and_off(
    text: str, is_missing: bool, tmp_path: Path
) -> None:
    assert governed(tmp_path, text).policy.is_redaction_missing is is_missing


@pytest.mark.covers("002.policy.places")
def test_a_decision_names_the_file_and_line_of_what_decided(tmp_path: Path) -> None:
    rules = governed(
        tmp_path,
        """
[policy]
max_attempts = 3

[[policy.rules]]
name = "nothing destructive"
effects = ["destructive"]
action = "deny"
""",
    )
    call = PolicyInput("wipe", Effect.DESTRUCTIVE, "anonymous", {}, {}, 2)
    assert decide(rules.policy, call)[1:3] == ("nothing destructive", "portbook.toml:5")
    assert decide(rules.policy, call._replace(attempt=4))[1:3] == ("max_attempts", "portbook.toml:3")


@pytest.mark.covers("002.policy.refused-at-start")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        case(
            "an unknown key of a rule",
            '[[policy.rules]]\nname = "a"\naction = "deny"\ntool = ["x"]',
            ":4:1: policy.rules[0].tool is not part of a rule; did you mean tools?",
        ),
        case(
            "a bad pattern",
            '[policy]\n\n[[policy.rules]]\nname = "a"\naction = "deny"\ntools = ["Refund"]',
            ":6:10: policy.rules[0].tools[0] is a bad pattern, 'Refund': canonical tool names are in lower ",
        ),
        case(
            "a rule that can never decide",
            '[[policy.rules]]\nname = "a"\naction = "deny"\n[[policy.rules]]\nname = "b"\naction = "ask"',
            ":4:1: policy.rules[1] can never decide: 'a' at portbook.toml:1 always wins over it; "
            "remove one of the two, or narrow the other with a condition",
        ),
        case(
            "a domain that is none",
            '[policy]\nallowed_domains = ["http://x/"]',
            ":2:20: policy.allowed_domains[0] cannot be used: ",
        ),
        case(
            "a network that is none",
            '[policy]\n\nallowed_networks = ["10.0.0.0/99"]',
            ":3:21: policy.allowed_networks[0] cannot be used: ",
        ),
        case(
            "a verb that is none",
            '[policy]\nallowed_methods = ["GTE"]',
            ":2:20: policy.allowed_methods[0] is not a method that is called; did you mean GET?",
        ),
        case(
            "a condition that is no schema",
            '[[policy.rules]]\nname = "a"\naction = "deny"\nwhere = { "/a" = { type = "money" } }',
            ":4:11: policy.rules[0].where./a is not a usable JSON Schema: ",
        ),
        case(
            "a pointer that is none",
            '[redaction]\npointers = ["a"]',
            ":2:13: redaction.pointers[0] cannot be used: ",
        ),
        case(
            "a pattern that backtracks",
            "[redaction]\npatterns = ['(?=a)b']",
            ":2:13: redaction.patterns[0] cannot be used: ",
        ),
    ],
)
def test_a_mistake_is_told_with_its_file_its_line_and_what_to_write(
    text: str, said: str, tmp_path: Path
) -> None:
    assert complaint(tmp_path, text).startswith(f"portbook.toml{said}")


KEYS = f'[[keys.allow]]\nname = "ada"\nsha256 = "{digest_of_key("ada")}"\n'


@pytest.mark.parametrize(
    ("text", "is_exposed", "is_required"),
    [
        case("on loopback", "", False, False),
        case("elsewhere", "", True, True),
        case("on loopback, asked for", "[keys]\nrequired = true", False, True),
        case("elsewhere, waived", "[keys]\nrequired = false", True, False),
    ],
)
def test_a_key_is_required_where_others_can_reach_the_boundary_unless_the_operator_says_otherwise(
    text: str, is_exposed: bool, is_required: bool, tmp_path: Path
) -> None:
    callers = governed(tmp_path, text, is_exposed=is_exposed).callers
    assert callers.is_key_required is is_required


def test_keys_come_from_the_file_and_from_the_store(tmp_path: Path) -> None:
    stored = (AllowedKey("bob", digest_of_key("bob"), ("look",)),)
    callers = governed(tmp_path, KEYS, stored=lambda: stored).callers
    assert callers.identify("ada").name == "ada"
    assert callers.identify("bob").name == "bob"
    assert callers.identify("bob").tools == ("look",)


@pytest.mark.parametrize(
    ("environ", "is_operator"), [({OPERATOR_KEY: CANARY}, True), ({OPERATOR_KEY: ""}, False), ({}, False)]
)
def test_the_operators_key_comes_from_its_variable_and_is_a_secret(
    environ: dict[str, str], is_operator: bool, tmp_path: Path
) -> None:
    rules = governed(tmp_path, "", environ)
    assert rules.callers.is_operator(CANARY) is is_operator
    assert not rules.callers.is_operator("")
    assert rules.redactor is not None
    assert (rules.redactor.redact_text(f"it is {CANARY}") == "it is [redacted]") is is_operator


def test_variables_that_the_file_names_and_what_the_gateways_know_are_secrets(tmp_path: Path) -> None:
    text = '[redaction]\nsecrets = ["FIRST", "UNSET", "EMPTY"]'
    environ = {"FIRST": "first secret", "EMPTY": "", "OTHER": "other value"}
    rules = governed(tmp_path, text, environ, secrets=["second secret"])
    assert rules.redactor is not None
    said = rules.redactor.redact_text("first secret, second secret, other value")
    assert said == "[redacted], [redacted], other value"
    assert rules.secrets == ("second secret", "first secret")
    assert "first secret" not in repr(rules)


def test_the_mode_and_the_key_of_redaction_are_those_given(tmp_path: Path) -> None:
    text = '[redaction]\nmode = "hash"\nkeys = ["nickname"]\ndetectors = false'
    one, same, other = (governed(tmp_path, text, hash_key=key).redactor for key in (b"1", b"1", b"2"))
    assert one is not None
    assert same is not None
    assert other is not None
    secret: Any = {"nickname": "x", "plain": "AKIAIOSFODNN7EXAMPLE"}
    assert one.redact(secret) == same.redact(secret) != other.redact(secret)
    assert one.redact(secret)[0]["plain"] == secret["plain"]  # type: ignore[index,call-overload]


def a_tool(name: str, base_url: str | None) -> ToolSpec:
    operation = None if base_url is None else HttpOperation(name, base_url, "GET", "/")
    return ToolSpec(name, "", {}, True, Effect.READ, operation=operation)


TOOLS = [a_tool("a", "https://a.example"), a_tool("b", "http://127.0.0.1:9000/x"), a_tool("c", None)]


@pytest.mark.covers("002.policy.default")
def test_with_no_policy_http_goes_to_declared_base_urls_alone(tmp_path: Path) -> None:
    policy = policy_of(settings_of(tmp_path, ""), TOOLS)
    operations = [tool.operation for tool in TOOLS if tool.operation is not None]
    assert all(policy.lists(operation) for operation in operations)
    assert not policy.lists(HttpOperation("d", "https://b.example", "GET", "/"))
    assert not policy.lists(HttpOperation("d", "http://127.0.0.1:9001", "GET", "/"))


def test_with_an_allowlist_what_is_declared_has_to_be_on_it(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, '[policy]\nallowed_domains = ["a.example"]')
    policy = policy_of(settings, TOOLS)
    assert [policy.lists(tool.operation) for tool in TOOLS if tool.operation is not None] == [True, False]


def test_the_digest_of_a_policy_changes_where_a_decision_could_and_not_with_a_comment(tmp_path: Path) -> None:
    def digest(text: str, *base_urls: str) -> str:
        return policy_of(settings_of(tmp_path, text), [a_tool("t", url) for url in base_urls]).digest

    written = '[policy]\nmax_attempts = 3\n[[policy.rules]]\nname = "a"\naction = "deny"\n'
    same = "# a comment\n" + written + "[server]\nport = 1\n"
    assert digest(written) == digest(same)
    assert digest(written, "http://b", "http://a") == digest(written, "http://a", "http://b", "http://a")
    others = [
        digest(written.replace("3", "4")),
        digest(written.replace("deny", "ask")),
        digest(written, "http://a"),
        digest(written + 'tools = ["x"]\n'),
        digest(written + 'where = { "/a" = true }\n'),
    ]
    assert len({digest(written), *others}) == 6


EVERY_LIMIT = """
[policy]
allowed_domains = ["api.example.com", "127.0.0.1:9000"]
allowed_networks = ["10.1.0.0/16"]
allowed_methods = ["get", "POST"]
max_payload_bytes = 65536
max_execution_timeout_ms = 5000
max_attempts = 3
max_calls_per_minute = 600
default = "deny"
approval = "writes"
approver = "client"
require_redaction = true

[redaction]
enabled = false

[[policy.rules]]
name = "large refunds need a person"
tools = ["refund"]
action = "ask"
where = { "/cents" = { minimum = 10000 } }

[[policy.rules]]
name = "reading"
effects = ["read"]
callers = ["ada"]
action = "allow"
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        case("nothing is set", "", "222bb1fde1fcd2dc7d63e516097f6882f205bcbe519327db55c5bb2f9fb097bf"),
        case("every limit", EVERY_LIMIT, "3d66ddce0810381443c771996dc3f65e242c2e5d15c783251df23f96573c3e44"),
    ],
)
def test_the_digest_of_a_policy_is_the_same_in_every_version(
    text: str, expected: str, tmp_path: Path
) -> None:
    """Approvals that wait and envelopes that were signed hold it."""
    tools = [a_tool("a", "https://a.example"), a_tool("b", "http://127.0.0.1:9000")]
    assert policy_of(settings_of(tmp_path, text), tools).digest == expected


def test_a_wrong_key_is_refused_by_the_rules_that_a_file_makes(tmp_path: Path) -> None:
    with pytest.raises(Refused) as raised:
        governed(tmp_path, KEYS).callers.identify("wrong")
    assert raised.value.reason is Reason.UNAUTHORIZED
