"""A Portbook over HTTP whose tools come from one OpenAPI document, with the API behind it."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.decoding_api import DecodingApi, decoding_api
from support.portbook_process import HttpServer, http_server

__all__ = ["ServedDocument", "served_document"]


@dataclass
class ServedDocument:
    """What answers for the document's operations: Portbook, and the API that saw what was sent."""

    server: HttpServer
    api: DecodingApi

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps({"session_id": "s-1", "args": arguments}).encode()
        answer = self.server.request(f"/tools/api.{tool}", body, content_type="application/json")
        return json.loads(answer.body)


@contextmanager
def served_document(
    folder: Path, document: dict[str, Any], settings: str, *, env: dict[str, str] | None = None
) -> Generator[ServedDocument]:
    """Serve `document` as `api.json` of `folder`; `{url}` in the settings is the address of the API."""
    (folder / "api.json").write_text(json.dumps(document))
    with decoding_api() as api:
        (folder / "portbook.toml").write_text(settings.format(url=api.url))
        with http_server(cwd=folder, tools=(), env=env) as server:
            yield ServedDocument(server, api)
