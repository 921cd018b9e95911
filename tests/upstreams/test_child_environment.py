"""The variables of a server's process: a short list of ours, and what it is given."""

from __future__ import annotations

import pytest

from portbook.upstreams.stdio_server_process import child_environment
from portbook.upstreams.transport import NotSent

FIRST = {"PORTBOOK_SERVERS_BEFORE": "1"}


def test_only_listed_variables_are_passed_on() -> None:
    ours = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "HTTPS_PROXY": "http://p",
        "AWS_SECRET_ACCESS_KEY": "x",
        "PORTBOOK_KEY": "y",
    }
    assert child_environment(ours, {}) == {"PATH": "/bin", "LC_ALL": "C", "HTTPS_PROXY": "http://p", **FIRST}


def test_what_is_given_wins() -> None:
    assert child_environment({"PATH": "/bin"}, {"PATH": "/own", "A": "b"}) == {
        "PATH": "/own",
        "A": "b",
        **FIRST,
    }


def test_a_portbook_that_starts_itself_again_comes_to_an_end() -> None:
    ours: dict[str, str] = {}
    for depth in range(1, 5):
        ours = child_environment(ours, {"PORTBOOK_SERVERS_BEFORE": "0"})
        assert ours == {"PORTBOOK_SERVERS_BEFORE": str(depth)}
    with pytest.raises(NotSent, match="give it settings of its own with --config"):
        child_environment(ours, {})


@pytest.mark.parametrize("odd", ["", "-1", "x", "9" * 5000])
def test_a_count_that_is_none_counts_from_the_start(odd: str) -> None:
    assert child_environment({"PORTBOOK_SERVERS_BEFORE": odd}, {}) == FIRST
