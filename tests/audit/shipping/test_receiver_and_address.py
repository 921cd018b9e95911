"""Addresses of receivers."""

from __future__ import annotations

import pytest

from portbook.audit.shipping.receiver_and_address import BadTarget, SyslogTarget, otlp_target, syslog_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("udp://logs.example.com", SyslogTarget("udp", "logs.example.com", 514)),
        ("tcp://10.0.0.7:1514", SyslogTarget("tcp", "10.0.0.7", 1514)),
        ("tls://[2001:db8::1]", SyslogTarget("tls", "2001:db8::1", 6514)),
        ("unix:/dev/log", SyslogTarget("unix", "", 0, "/dev/log")),
        ("unix:///dev/log", SyslogTarget("unix", "", 0, "/dev/log")),
    ],
)
def test_an_address_of_syslog_is_read(text: str, target: SyslogTarget) -> None:
    assert syslog_target(text) == target


@pytest.mark.parametrize(
    "text",
    ["", "logs", "http://a", "tcp://", "tcp://a:b", "tcp://a/path", "tcp://me@a", "unix:log", "tcp://[::1"],
)
def test_what_is_no_address_of_syslog_is_refused(text: str) -> None:
    with pytest.raises(BadTarget, match=r"write it as|is written as"):
        syslog_target(text)


@pytest.mark.parametrize("text", ["", "collector:4318", "tcp://a", "http://user@a/v1/logs"])
def test_what_is_no_address_of_a_collector_is_refused(text: str) -> None:
    with pytest.raises(BadTarget, match="write it as https://HOST:PORT/v1/logs"):
        otlp_target(text)
