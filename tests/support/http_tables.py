"""The `[http]` table read from a text: its tools, its gateways, or the complaint."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from portbook.apis.http_table import HttpTools, read_http
from portbook.tools.http_operation import HttpOperation
from portbook.tools.spec import ToolSpec

HERE = Path("/settings")


class Complaint(Exception):
    pass


def complain(path: tuple[str | int, ...], sentence: str) -> Exception:
    return Complaint(f"{'.'.join(map(str, path))} {sentence}")


def read(text: str, environ: dict[str, str] | None = None, folder: Path = HERE) -> HttpTools:
    return read_http(tomllib.loads(text)["http"], environ or {}, folder, complain)


def operation(spec: ToolSpec) -> HttpOperation:
    assert spec.operation is not None
    return spec.operation


def complaint(text: str, environ: dict[str, str] | None = None, folder: Path = HERE) -> str:
    with pytest.raises(Complaint) as caught:
        read(text, environ, folder)
    return str(caught.value)


BASE = '[http.orders]\nbase_url = "https://a.example"\n'
TOOL = BASE + '[http.orders.tools.it]\nmethod = "GET"\npath = "/"\n'
