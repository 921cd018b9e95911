"""Variables that would change Portbook itself."""

from __future__ import annotations

import pytest

from portbook.adopt.reserved_variable import is_reserved, unreserved


@pytest.mark.parametrize(
    ("name", "is_so"),
    [
        ("PYTHONPATH", True),
        ("LD_PRELOAD", True),
        ("DYLD_INSERT_LIBRARIES", True),
        ("PATH", True),
        ("HOME", True),
        ("SSL_CERT_FILE", True),
        ("https_proxy", True),
        ("LC_ALL", True),
        ("PORTBOOK_CONFIG", True),
        ("GITHUB_TOKEN", False),
        ("MY_PATH", False),
        ("MEMORY_FILE_PATH", False),
    ],
)
def test_names_that_portbook_itself_obeys_are_reserved(name: str, is_so: bool) -> None:
    assert is_reserved(name) is is_so


def test_a_prefix_never_makes_a_reserved_name() -> None:
    assert unreserved("FILES_", "HOME") == "FILES_HOME"
    assert unreserved("LD_", "LIBRARY_PATH") == "ADOPTED_LD_LIBRARY_PATH"
    assert unreserved("PORTBOOK_", "HOME") == "ADOPTED_PORTBOOK_HOME"
