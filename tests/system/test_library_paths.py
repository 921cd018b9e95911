"""The asset tools take a path with its folder as the operator wrote it, wherever that was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.portbook_process import environment, run

SCHEMA = {"version": "1.0", "type": "object"}


def found(project: Path, tool: str, argument: str, environ: dict[str, str]) -> bool:
    called = run("call", tool, argument, cwd=project, env=environment() | environ)
    return json.loads(called.out)["ok"]


@pytest.mark.covers("004.listing.folder-as-written")
@pytest.mark.parametrize("folder", ["../lib", "./lib", "lib"])
@pytest.mark.parametrize("where", ["the settings file", "a variable"])
def test_a_path_with_the_folder_as_it_was_written_is_found(where: str, folder: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    for kind in ("schemas", "examples"):
        (project / folder / kind).mkdir(parents=True)
        suffix = ".schema.json" if kind == "schemas" else ".json"
        (project / folder / kind / f"tone{suffix}").write_text(json.dumps(SCHEMA))
    settings = f'[assets]\nschemas = "{folder}/schemas"\nexamples = "{folder}/examples"\n'
    variables = {"SYN_SCHEMAS_DIR": f"{folder}/schemas", "SYN_EXAMPLES_DIR": f"{folder}/examples"}
    (project / "portbook.toml").write_text(settings if where == "the settings file" else "")
    environ = {} if where == "the settings file" else variables
    assert found(project, "get_schema", f"name={folder}/schemas/tone.schema.json", environ)
    assert found(project, "get_example", f"path={folder}/examples/tone.json", environ)
    assert not found(project, "get_example", f"path={folder}/examples/other.json", environ)
