"""Values of variables and headers: from where the settings say, and secret unless they are plain."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from portbook.upstreams.mcp_table import ValueSource
from portbook.upstreams.secret_values import GivenSecrets, ValueReader
from portbook.upstreams.transport import NotSent


def read(source: ValueSource, folder: Path, noticed: list[str] | None = None) -> str:
    environ = {"TOKEN": "of-the-environment"}
    noticed = [] if noticed is None else noticed
    reader = ValueReader("mcp.git.env", {"A": source}, environ, folder, GivenSecrets(noticed.append))
    return asyncio.run(reader.read())["A"]


def test_all_but_plain_text_is_a_secret(tmp_path: Path) -> None:
    noticed: list[str] = []
    (tmp_path / "token").write_text("of-a-file\n")
    prints = (sys.executable, "-c", "print('of-a-command')")
    assert read(ValueSource(text="plain"), tmp_path, noticed) == "plain"
    assert read(ValueSource(env="TOKEN"), tmp_path, noticed) == "of-the-environment"
    assert read(ValueSource(file=tmp_path / "token"), tmp_path, noticed) == "of-a-file"
    assert read(ValueSource(command=prints), tmp_path, noticed) == "of-a-command"
    assert noticed == ["of-the-environment", "of-a-file", "of-a-command"]
    assert read(ValueSource(env="TOKEN", is_secret=False), tmp_path, noticed) == "of-the-environment"
    assert len(noticed) == 3


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (ValueSource(env="MISSING"), "variable MISSING is not set"),
        (ValueSource(file=Path("/no/such/file")), "cannot be read"),
        (ValueSource(command=("/no/such/program",)), "cannot be started"),
        (ValueSource(command=(sys.executable, "-c", "raise SystemExit(3)")), "status 3"),
    ],
)
def test_a_value_that_is_missing_is_named_by_its_setting(
    source: ValueSource, said: str, tmp_path: Path
) -> None:
    with pytest.raises(NotSent, match=said) as caught:
        read(source, tmp_path)
    assert str(caught.value).startswith("mcp.git.env.A: ")
