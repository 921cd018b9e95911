"""Blocks of YAML, replaced in place."""

from __future__ import annotations

import pytest

from portbook.adopt.client_document import Entry, NotReadable, edited


def test_lists_and_mappings_of_yaml_are_replaced() -> None:
    put = Entry("portbook", {"name": "portbook", "command": "p"})
    text = "s:\n  - name: a\n    command: x\n  # next\n  - command: y\n    name: b\nt: 1"
    wanted = 's:\n  - name: "portbook"\n    command: "p"\n  # next\n  - command: y\n    name: b\nt: 1'
    assert edited(text, "yaml", ("s",), {"a"}, put) == wanted
    text = "s:\n    a:\n        x: 1\n\n    # next\n    b: {x: 2}\n"
    wanted = 's:\n    "portbook":\n      name: "portbook"\n      command: "p"\n\n    # next\n    b: {x: 2}\n'
    assert edited(text, "yaml", ("s",), {"a"}, put) == wanted


def test_the_last_entry_of_a_yaml_list_is_not_removed() -> None:
    with pytest.raises(NotReadable, match="remove the entry by hand"):
        edited("s:\n  a: {x: 1}\n", "yaml", ("s",), {"a"})
