"""The variables of a server's process: a short list of ours, and what it is given."""

from __future__ import annotations

from portbook.upstreams.child_environment import child_environment


def test_only_listed_variables_are_passed_on() -> None:
    ours = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "HTTPS_PROXY": "http://p",
        "AWS_SECRET_ACCESS_KEY": "x",
        "PORTBOOK_KEY": "y",
    }
    assert child_environment(ours, {}) == {"PATH": "/bin", "LC_ALL": "C", "HTTPS_PROXY": "http://p"}


def test_what_is_given_wins() -> None:
    assert child_environment({"PATH": "/bin"}, {"PATH": "/own", "A": "b"}) == {"PATH": "/own", "A": "b"}
