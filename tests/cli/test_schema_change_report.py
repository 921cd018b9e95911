"""Changes of schemas as people and programs read them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from portbook.assets.compat.verdict import Comparison, Compatibility, SchemaBreak
from portbook.cli.diff import ChangedSchema, written_changes
from portbook.errors import Finding
from support.portbook_process import environment

FINDING = Finding("/a", "expected integer", "type", "/properties/a/type")
SOURCE = '{\n  "properties": {"a": {"type": "integer"}}\n}'


def broken(instance: str) -> ChangedSchema:
    found = SchemaBreak("/properties/a/type", "type", {"a": instance}, (FINDING,))
    return ChangedSchema("", "new.json", Comparison(Compatibility.BREAKS, (found,)), source=SOURCE)


def test_a_long_instance_is_cut_where_it_is_part_of_a_message() -> None:
    line = written_changes([broken("x" * 5_000)], "github")
    assert line.startswith("::error file=new.json,line=2,col=32::/properties/a/type: {")
    assert line.endswith("x… was valid and no longer is: /a: expected integer\n")
    assert len(line) < 700
    assert written_changes([broken("\n".join("x" * 30))], "text").count("\n") == 5


def test_an_unknown_change_without_a_place_is_one_warning_about_the_file() -> None:
    change = ChangedSchema("", "new.json", Comparison(Compatibility.UNKNOWN))
    expected = "::warning file=new.json::neither a break nor a proof was found\n"
    assert written_changes([change], "github") == expected


def test_a_new_version_from_standard_input_has_lines_and_columns_too(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"properties": {"a": {"type": "number"}}}')
    done = subprocess.run(
        [sys.executable, "-m", "portbook", "diff", "--schema", "old.json", "-"],
        cwd=tmp_path,
        env=environment(),
        input=SOURCE.encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    (found,) = json.loads(done.stdout)["breaks"]
    assert (found["file"], found["line"], found["column"]) == ("-", 2, 32)
