"""Everything that is measured, as rows: which server, with which settings, called how."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from bench.gateways import OVER_HTTP, OVER_STDIO, portbook_in_front, upstream_settings
from bench.http_load import HttpCalls
from bench.peers import (
    PEERS,
    ROOT,
    bare_http,
    before_an_api,
    payload_floor,
    portbook,
    portbook_alone,
    proxied_http,
    sdk_over_http,
)
from bench.stdio_load import StdioCalls

__all__ = ["FULL", "QUICK", "Scenario", "Size", "payload", "scenarios"]

# Only the tools of the bench are served: what a start costs beyond them is not what is compared.
_SETTINGS: Final = "[docs]\nenabled = false\n"
_KEY: Final = "pbk_" + "bench" * 8
_WITH_KEY: Final = f"""
[keys]
required = true
[[keys.allow]]
name = "bench"
sha256 = "{hashlib.sha256(_KEY.encode()).hexdigest()}"
"""
_WITH_WHERE: Final = """
[[policy.rules]]
name = "no secrets by name"
action = "deny"
tools = ["echo"]
where = { "/text" = { pattern = "^forbidden" } }
"""
_RECORDED: Final = "[audit]\narguments = true\n"

_NEWEST: Final = "2026-07-28"


class Size(NamedTuple):
    """How much is done: calls of quick and of slow servers, and the steps of growth."""

    rounds: int
    quick_calls: int
    slow_calls: int
    one_at_a_time: int
    tools: tuple[int, ...]
    payload_kb: tuple[int, ...]
    crowd: int = 0
    """Silent connections beside a call over HTTP, and as many slow ones."""


FULL: Final = Size(5, 10_000, 1_000, 300, (10, 100, 1_000, 10_000), (1, 10, 100, 1_000), 2_000)
QUICK: Final = Size(1, 3_000, 300, 100, (10, 10_000), (1, 100, 1_000), 200)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row: a server, and what is called. `command` takes the port, which is 0 over STDIO."""

    name: str
    command: Callable[[int], list[str]]
    calls: StdioCalls | HttpCalls
    settings: str | Callable[[], str] = _SETTINGS
    extra: dict[str, str] = field(default_factory=dict[str, str])
    """Further environment variables."""


def scenarios(size: Size) -> list[Scenario]:
    """Return all rows, in the order in which a round runs them: peers beside what is compared with them."""
    return [
        *_peers(size),
        *_kinds_of_calls(size),
        *_growth(size),
        *_over_http(size),
        *_of_an_api(size),
        *_through_gateways(size),
    ]


def _stdio(toolset: str) -> Callable[[int], list[str]]:
    return lambda _: portbook(toolset, "--stdio")


def _peers(size: Size) -> list[Scenario]:
    rows: list[Scenario] = []
    for name, command in PEERS.items():
        is_slow = "Python" in name or "FastMCP" in name
        calls = StdioCalls(size.slow_calls if is_slow else size.quick_calls, size.one_at_a_time)
        rows.append(Scenario(name, lambda _, command=command: command(), calls))
    return rows


def _kinds_of_calls(size: Size) -> list[Scenario]:
    echo = _stdio("portbook_echo.py")

    def row(name: str, settings: str = "", extra: dict[str, str] | None = None, **calls: Any) -> Scenario:
        asked = StdioCalls(size.quick_calls, size.one_at_a_time, **calls)
        return Scenario(name, echo, asked, _SETTINGS + settings, extra or {})

    return [
        row("portbook"),
        row("inline", tool="echo_inline"),
        row("with a key", _WITH_KEY, {"PORTBOOK_KEY": _KEY}),
        row("policy with where", _WITH_WHERE),
        row("recorded arguments", _RECORDED),
        row("effect write", tool="echo_write"),
        row("in a thread", tool="echo_thread"),
        row("envelope with provenance", meta={"capture_provenance": True}),
        row("envelope dialect", dialect="envelope"),
        row("bare dialect", dialect="bare", tool="list_schemas"),
        Scenario("without pydantic", _stdio("portbook_plain.py"), StdioCalls(size.quick_calls)),
    ]


def _growth(size: Size) -> list[Scenario]:
    many = [
        Scenario(
            f"{count:,} tools",
            _stdio("portbook_many.py"),
            StdioCalls(size.quick_calls),
            extra={"BENCH_TOOLS": str(count)},
        )
        for count in size.tools
    ]
    large: list[Scenario] = []
    for kb in size.payload_kb:
        # At least so many: a process whose memory has yet to grow takes longer for its first large calls.
        calls = StdioCalls(max(4_000 // kb, 40), tool="echo_items", items=payload(kb))
        beside = {"PYTHONPATH": str(ROOT)}
        large.append(Scenario(f"payload {kb:,} kB", _stdio("portbook_echo.py"), calls))
        large.append(Scenario(f"floor {kb:,} kB", lambda _: payload_floor(), calls, extra=beside))
    return [*many, *large]


def payload(kb: int) -> list[str]:
    """Return texts that are `kb` thousand bytes of JSON: of the largest, a message of 1 MiB holds one."""
    return [f"a line of text with the number {number:08}" for number in range(kb * 1000 // 42)]


def _over_http(size: Size) -> list[Scenario]:
    def serve(port: int) -> list[str]:
        return portbook("portbook_echo.py", "--http", "--port", str(port))

    def calls(**options: Any) -> HttpCalls:
        return HttpCalls(size.slow_calls, one_at_a_time=size.one_at_a_time, **options)

    handshake, newest = calls(), calls(revision=_NEWEST)
    proxied = calls(revision=_NEWEST, listens_early=True)
    return [
        Scenario("bare httptools", bare_http, newest),
        Scenario("caddy in front of it", proxied_http("caddy"), proxied),
        Scenario("traefik in front of it", proxied_http("traefik"), proxied),
        Scenario("sdk over http", lambda port: sdk_over_http(port, "--stateless"), handshake),
        Scenario("portbook over http", serve, handshake),
        Scenario(f"sdk over http, {_NEWEST}", sdk_over_http, newest),
        Scenario(f"portbook over http, {_NEWEST}", serve, newest),
        Scenario("portbook over http, /rpc", serve, calls(route="/rpc")),
        Scenario("portbook over http, /execute", serve, calls(route="/execute")),
        Scenario("portbook over http, in a crowd", serve, calls(crowd=size.crowd)),
    ]


def _of_an_api(size: Size) -> list[Scenario]:
    calls = StdioCalls(size.slow_calls, tool="api.echo")
    # No toolset: the one tool is in the settings, where it gets the address of the API.
    serve = [*portbook_alone(), "serve", "--stdio", "--config", "portbook.toml", "--log-dir", "log"]
    return [
        Scenario("our HTTP client alone", lambda _: before_an_api(), calls),
        Scenario("a tool of an HTTP API", lambda _: before_an_api(*serve), calls),
    ]


def _through_gateways(size: Size) -> list[Scenario]:
    """Return the rows with one fast server behind: each gateway where it listens, and ours beside it."""
    slow, quick = (StdioCalls(each, size.one_at_a_time) for each in (size.slow_calls, size.quick_calls))
    asked = HttpCalls(size.slow_calls, one_at_a_time=size.one_at_a_time)

    def serve(port: int) -> list[str]:
        return portbook_in_front("--http", "--port", str(port))

    return [
        *(Scenario(name, command, slow) for name, command in OVER_STDIO.items()),
        Scenario("through portbook", lambda _: portbook_in_front("--stdio"), quick, upstream_settings),
        *(Scenario(name, command, asked) for name, command in OVER_HTTP.items()),
        Scenario("through portbook over http", serve, asked, upstream_settings),
    ]
