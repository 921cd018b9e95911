"""`portbook init`: a settings file to start from."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import click

from portbook.cli.output_and_errors import fail, say
from portbook.settings import CONFIG_NAME

__all__ = ["STARTER", "command"]

STARTER: Final = """\
# Settings of Portbook. Every key is explained in docs/reference/settings.md.
# `portbook explain TOOL [name=value ...]` shows how these rules decide a call, without running it.

[policy]
# Tools that read are allowed. Tools that write need approval, unless a rule below decides.
approval = "writes"               # never | writes | always
max_payload_bytes = 65536         # of a call's arguments
max_execution_timeout_ms = 30000  # of any tool
max_attempts = 3                  # of any call
# max_calls_per_minute = 600      # of any caller

# Destinations of HTTP tools: host, host:port or *.domain. By default only the base URLs below.
# allowed_domains = ["api.example.com", "127.0.0.1:9000"]
# allowed_methods = ["GET", "POST"]

# Rules. Deny wins over ask, and ask over allow, in any order. A rule matches by these keys:
# tools, effects, callers, sessions (patterns) and where (JSON Pointers into the arguments, JSON Schemas).
[[policy.rules]]
name = "nothing destructive"
effects = ["destructive"]
action = "deny"

# [[policy.rules]]
# name = "small refunds need no approval"
# tools = ["refund"]
# where = { "/cents" = { maximum = 1000 } }
# action = "allow"

[redaction]
# Members whose values are secret, besides password, token, authorization and similar names.
keys = []

[audit]
log_dir = "runs"
on_failure = "refuse"             # or "warn": run calls without records

# Python functions as tools.
# [python]
# toolsets = ["my_tools.py"]

# HTTP APIs as tools: this one is named orders.get_order.
# [http.orders]
# base_url = "http://127.0.0.1:9000"
#
# [http.orders.tools.get_order]
# description = "One order by its id."
# method = "GET"
# path = "/orders/{id}"
# effect = "read"                 # read | write | destructive
# input = { type = "object", required = ["id"], properties = { id = { type = "string" } } }

# MCP servers behind Portbook: their tools are named github.*.
# [mcp.github]
# command = ["npx", "-y", "@example/server"]
# env = { GITHUB_TOKEN = { env = "GITHUB_TOKEN" } }
# Nothing of it is served before `portbook pin` has approved what it offers.
"""


@click.command("init")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default=CONFIG_NAME)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def command(path: Path, *, force: bool) -> None:
    """Write a commented settings file: reads are allowed, writes need approval, destructive calls are denied.

    PATH is portbook.toml by default.
    """
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(STARTER)
    except FileExistsError:
        raise fail(f"{path} exists; --force overwrites it") from None
    except OSError as error:
        remedy = "create its folder, or name a different file"
        raise fail(f"{path}: cannot be written: {error.strerror}; {remedy}") from None
    # Only the default name is found without being named.
    option = "" if str(path) == CONFIG_NAME else f" --config {shlex.quote(str(path))}"
    say(
        f"wrote {path}; `portbook tools{option}` lists what it serves,"
        f" `portbook explain TOOL{option}` shows decisions"
    )
