"""The table of where instructions go: files, and their functions below them."""

from __future__ import annotations

from bench.where import show_by_file


def test_files_are_ordered_by_what_all_their_functions_take() -> None:
    spent = {"one.py:first": 600.4, "two.py:A.many": 500.0, "two.py:A.few": 200.0, "two.py:none": 0.2}
    assert [" ".join(line.split()) for line in show_by_file(spent)] == [
        "1,300 of one call, by file and function",
        "700 two.py",
        "500 A.many",
        "200 A.few",
        "600 one.py",
        "600 first",
    ]
