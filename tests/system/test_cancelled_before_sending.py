"""A call of an API that is cancelled before its request left had no effects, and its record says so."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import handshake
from support.portbook_process import PORTBOOK, child, records

SETTINGS = """
[docs]
enabled = false

[http.shop]
base_url = "{scheme}://127.0.0.1:{port}"

[http.shop.tools.order]
method = "POST"
path = "/orders"
"""


def frame(method: str, params: Any, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode() + b"\n"


@pytest.mark.covers("mcp.cancel.unsent")
@pytest.mark.parametrize(("scheme", "is_executed"), [("https", False), ("http", True)])
def test_a_call_that_is_cancelled_before_its_request_left_did_not_run(
    tmp_path: Path, scheme: str, is_executed: bool
) -> None:
    # The API accepts connections, and says nothing: a TLS connection is never made, and no request sent.
    with socket.create_server(("127.0.0.1", 0)) as api:
        settings = SETTINGS.format(scheme=scheme, port=api.getsockname()[1])
        (tmp_path / "portbook.toml").write_text(settings)
        command = [*PORTBOOK, "serve", "--stdio"]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        with child(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=nothing) as process:
            assert process.stdin is not None
            process.stdin.write(frame("initialize", handshake("2025-11-25"), id=0))
            process.stdin.write(frame("tools/call", {"name": "shop__order", "arguments": {}}, id=1))
            process.stdin.flush()
            connection, _ = api.accept()
            with connection:
                assert connection.recv(1)  # of the request, or of what begins a TLS connection
                process.stdin.write(frame("notifications/cancelled", {"requestId": 1}))
                process.communicate(timeout=30)
    _, record = records(tmp_path / "runs")
    assert record["error"]["reason"] == "CANCELLED"
    assert record["error"]["executed"] is is_executed
