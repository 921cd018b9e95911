"""Checks the files of a folder as one would with `jsonschema`: a registry, one validator, a loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

schemas = {path.name: json.loads(path.read_text()) for path in sorted(Path("schemas").glob("*.json"))}
resources: Any = {
    name: Resource.from_contents(schema, default_specification=DRAFT202012)
    for name, schema in schemas.items()
}
registry: Any = Registry[Any]().with_resources(resources.items())
validator: Any = Draft202012Validator(schemas["asset.schema.json"], registry=registry)

files: list[dict[str, object]] = []
for path in sorted(Path("assets").glob("*.json")):
    asset = json.loads(path.read_text())
    errors = sorted((list(error.absolute_path), error.message) for error in validator.iter_errors(asset))
    files.append({"file": str(path), "ok": not errors})
print(json.dumps({"files": files}))
