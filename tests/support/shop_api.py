"""An OpenAPI document of a shop, for tests of the settings around a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["SCHEMES", "operation", "shop", "write_shop"]

SCHEMES: dict[str, Any] = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query_key": {"type": "apiKey", "in": "query", "name": "api_key"},
    "session": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "login": {"type": "http", "scheme": "basic"},
    "token": {"type": "oauth2", "flows": {}},
}


def operation(name: str, **members: Any) -> dict[str, Any]:
    """One operation; `members` are further ones of its object."""
    responses = {"200": {"description": "Done.", "content": {"application/json": {}}}}
    return {"operationId": name, "summary": f"Does {name}.", "responses": responses, **members}


def shop(*operations: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A document with these operations, each a GET under its own path."""
    paths = {f"/{each['operationId']}": {"get": each} for each in operations}
    components = {"securitySchemes": SCHEMES}
    return {"openapi": "3.0.3", "info": {}, "paths": paths, "components": components, **members}


def write_shop(folder: Path, settings: str, *operations: dict[str, Any], **members: Any) -> None:
    """Write `shop.json` and the settings of an API `shop` into a folder."""
    (folder / "shop.json").write_text(json.dumps(shop(*operations, **members)))
    (folder / "portbook.toml").write_text(f'[http.shop]\nopenapi = "shop.json"\n{settings}')
