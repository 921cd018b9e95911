"""What a policy says in vain is told by every verb that reads it, with file and line."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import PORTBOOK, Finished, child, run

TOOLS = """
from typing import Any

from portbook import Toolset

toolset = Toolset("shop")


@toolset.tool(effect="destructive")
def refund(amount: int, note: str = "") -> int:
    return amount


@toolset.tool(effect="read")
def look(name: str) -> str:
    return name


@toolset.tool(effect="write", input_schema={"type": "object"})
def anything(**given: Any) -> int:
    return len(given)
"""
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "orders", "version": "1"},
    "paths": {
        "/orders": {
            "get": {"operationId": "list_orders", "responses": {"200": {"description": "ok"}}},
            "delete": {"operationId": "delete_orders", "responses": {"200": {"description": "ok"}}},
        }
    },
}
ORDERS = '[http.orders]\nbase_url = "https://api.example.com"\nopenapi = "orders.json"\n'
CASES = '[[case]]\ntool = "look"\nargs = { name = "a" }\nexpect = "allow"\n'


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def rule(text: str) -> str:
    return f'[[policy.rules]]\nname = "r"\naction = "deny"\n{text}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "orders.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "cases.toml").write_text(CASES)
    return tmp_path


# Every verb that reads a policy.
VERBS = [
    ("serve", "--stdio"),
    ("call", "look", "name=a"),
    ("explain", "look", "name=a"),
    ("policy", "test", "cases.toml"),
]


def through_every_verb(folder: Path, settings: str) -> list[Finished]:
    (folder / "portbook.toml").write_text('[python]\ntoolsets = ["tools.py"]\n' + settings)
    return [run(*verb, cwd=folder) for verb in VERBS]


@pytest.mark.covers("002.policy.in-vain-refused")
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        case(
            "an argument that the tool does not take",
            rule('tools = ["refund"]\nwhere = { "/amuont" = { minimum = 5 } }'),
            "portbook.toml:7:11: policy.rules[0].where./amuont can never be met: no tool of rule 'r' takes "
            "this argument; did you mean /amount?",
        ),
        case(
            "arguments of two tools",
            rule('tools = ["refund", "look"]\nwhere = { "/amount" = {}, "/name" = {} }'),
            "portbook.toml:7:11: policy.rules[0].where./amount can never be met",
        ),
        case(
            "an effect of an operation that the document does not have",
            ORDERS + 'effects = { delete_order = "read" }\n',
            "portbook.toml:6:1: http.orders.effects names 'delete_order', and the document has no such "
            "operation; did you mean delete_orders?",
        ),
        case(
            "an exclusion of an operation that the document does not have",
            ORDERS + 'exclude = ["remove_orders"]\n',
            "portbook.toml:6:1: http.orders.exclude names 'remove_orders', and the document has no such ",
        ),
    ],
)
def test_what_can_never_hold_stops_every_verb(folder: Path, settings: str, said: str) -> None:
    for finished in through_every_verb(folder, settings):
        assert finished.code == 2
        assert said in finished.err
        assert finished.out == b""


@pytest.mark.covers("002.policy.in-vain-warned")
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        case(
            "a dead name beside a live one",
            rule('tools = ["refund", "refnud"]'),
            "portbook.toml:6:1: rule 'r' names 'refnud', which matches nothing that is served; "
            "did you mean refund?",
        ),
        case(
            "a dead pattern beside a live one",
            rule('tools = ["refund", "orders.*"]'),
            "portbook.toml:6:1: rule 'r' names 'orders.*', which matches nothing that is served; ",
        ),
        case(
            "an effect that the named tools do not have",
            rule('tools = ["look"]\neffects = ["destructive"]'),
            "portbook.toml:7:1: rule 'r' matches nothing that is served: no tool that it names has the "
            "effect destructive",
        ),
        case(
            "an argument that no tool of a pattern takes",
            rule('tools = ["refun*"]\nwhere = { "/amuont" = { minimum = 5 } }'),
            "portbook.toml:7:11: rule 'r' checks '/amuont', which no tool that it matches declares; "
            "did you mean /amount?",
        ),
        case(
            "an argument of every tool",
            rule('where = { "/amuont" = { minimum = 5 } }'),
            "portbook.toml:6:11: rule 'r' checks '/amuont', which no tool that it matches declares; ",
        ),
        case(
            "an argument that an open schema does not name",
            rule('tools = ["anything"]\nwhere = { "/amount" = { minimum = 5 } }'),
            "portbook.toml:7:11: rule 'r' checks '/amount', which no tool that it matches declares; ",
        ),
        case(
            "a domain that excludes a base URL",
            '[policy]\nallowed_domains = ["example.com"]\n' + ORDERS,
            "portbook.toml:4:1: policy.allowed_domains excludes the host of http.orders.base_url at "
            "portbook.toml:6:1; every call of its tools is denied; add the host",
        ),
        case(
            "methods that exclude all of an API",
            '[policy]\nallowed_methods = ["POST"]\n' + ORDERS,
            "portbook.toml:4:1: policy.allowed_methods has none of the methods of http.orders at "
            "portbook.toml:6:1; every call of its tools is denied; add DELETE or GET",
        ),
        case(
            "a pattern of effects that matches no operation",
            ORDERS + 'effects = { "remove_*" = "destructive" }\n',
            "portbook.toml:6:1: http.orders.effects has 'remove_*', which matches no operation of the",
        ),
        case(
            "an effect after one that matches the same",
            ORDERS + 'effects = { "*" = "write", delete_orders = "destructive" }\n',
            "portbook.toml:6:1: http.orders.effects has 'delete_orders' after patterns that match the same; "
            "put it first",
        ),
        case(
            "an effect of an excluded operation",
            ORDERS + 'exclude = ["delete_*"]\neffects = { delete_orders = "read" }\n',
            "portbook.toml:7:1: http.orders.effects has 'delete_orders', and what it matches is left out by "
            "include, exclude, tags or deprecated",
        ),
        case(
            "an operation that is included and excluded",
            ORDERS + 'include = ["delete_orders", "list_*"]\nexclude = ["delete_*"]\n',
            "portbook.toml:6:1: http.orders.include has 'delete_orders', and what it matches is left out by ",
        ),
        case(
            "conditions that contradict each other",
            rule('tools = ["refund"]\nwhere = { "/amount" = { minimum = 5, maximum = 1 } }'),
            "portbook.toml:7:11: rule 'r' sets conditions for '/amount' that contradict each other; "
            "no value meets them",
        ),
        case(
            "methods that exclude the backend of assets",
            '[assets]\nenabled = true\nbackend_url = "http://127.0.0.1:9"\n'
            '[policy]\nallowed_methods = ["GET"]\n',
            "portbook.toml:7:1: policy.allowed_methods has none of the methods of assets.backend_url at "
            "portbook.toml:5:1; every call of its tools is denied; add POST",
        ),
        case(
            "a key for a tool that does not exist",
            f'[[keys.allow]]\nname = "ci"\nsha256 = "{"0" * 64}"\ntools = ["look", "lok"]\n',
            "portbook.toml:6:1: key 'ci' names 'lok', which matches nothing that is served; did you mean",
        ),
    ],
)
def test_what_has_no_effect_is_a_warning_of_every_verb(folder: Path, settings: str, said: str) -> None:
    for finished in through_every_verb(folder, settings):
        assert any(
            line.startswith("portbook: warning: ") and said in line for line in finished.err.splitlines()
        )
        assert finished.code in (0, 3)


@pytest.mark.parametrize(
    "settings",
    [
        case("a rule about every tool of an effect", rule('effects = ["write"]')),
        case(
            "an argument with a default", rule('tools = ["refund"]\nwhere = { "/note" = { minLength = 9 } }')
        ),
        case("an argument that one of the tools takes", rule('where = { "/amount" = { minimum = 5 } }')),
        case(
            "the whole of the arguments", rule('tools = ["refund"]\nwhere = { "" = { maxProperties = 1 } }')
        ),
        case("a domain that lists the base URL", '[policy]\nallowed_domains = ["*.example.com"]\n' + ORDERS),
        case("a domain without an API", '[policy]\nallowed_domains = ["example.com"]\n'),
        case("methods that include one of the API's", '[policy]\nallowed_methods = ["GET"]\n' + ORDERS),
        case("effects that hold", ORDERS + 'effects = { delete_orders = "read", "*" = "write" }\n'),
        case(
            "an effect of operations of which one is excluded",
            ORDERS + 'exclude = ["delete_*"]\neffects = { "*_orders" = "read" }\n',
        ),
    ],
)
def test_what_holds_is_not_doubted(folder: Path, settings: str) -> None:
    for finished in through_every_verb(folder, settings):
        assert "warning" not in finished.err
        assert finished.code in (0, 3)


def test_a_reload_says_what_has_no_effect(folder: Path) -> None:
    config = folder / "portbook.toml"
    config.write_text('[python]\ntoolsets = ["tools.py"]\n')
    with child(
        [*PORTBOOK, "serve", "--http", "--port", "0"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert "serving 3 tools" in process.stderr.readline()
        config.write_text(config.read_text() + rule('tools = ["refund", "refnud"]'))
        process.send_signal(signal.SIGHUP)
        assert "portbook.toml:6:1: rule 'r' names 'refnud'" in process.stderr.readline()
        assert "reloaded" in process.stderr.readline()
