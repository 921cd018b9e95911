"""Translates a Swagger 2.0 document to what the reading of OpenAPI 3.0 needs. Pure: no I/O.

Only the shape changes: references into `definitions`, `parameters` and `responses` lead into `components`,
parameters get a `schema`, those of a body or a form become a `requestBody`, and responses get `content`. The
schemas themselves are those of OpenAPI 3.0, or nearly so.
"""

from __future__ import annotations

from typing import Any, Final, cast

__all__ = ["is_swagger", "openapi_of"]

_METHODS: Final = frozenset({"get", "head", "options", "post", "put", "patch", "delete"})
_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_MOVED: Final = {
    "#/definitions/": "#/components/schemas/",
    "#/parameters/": "#/components/parameters/",
    "#/responses/": "#/components/responses/",
}
# Members of a parameter that are not part of its schema.
_OF_PARAMETER: Final = frozenset(
    {"name", "in", "description", "required", "collectionFormat", "allowEmptyValue", "schema"}
)
# Members of an operation that become others.
_REWRITTEN: Final = frozenset({"parameters", "responses", "consumes", "produces"})
# How `collectionFormat` writes a list, as style and explode. OpenAPI 3.0 has no style for tabs, so that the
# operation is left out, with the name of the style.
_STYLES: Final[dict[str, dict[str, Any]]] = {
    "csv": {"explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "tsv": {"style": "tabDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
    "multi": {"explode": True},
}
_FLOWS: Final = {
    "implicit": "implicit",
    "password": "password",
    "application": "clientCredentials",
    "accessCode": "authorizationCode",
}

_Object = dict[str, Any]


def is_swagger(root: Any) -> bool:
    """Return whether a document is Swagger 2.0."""
    return isinstance(root, dict) and cast("_Object", root).get("swagger") in ("2.0", 2.0)


def openapi_of(root: _Object) -> _Object:
    """Return the OpenAPI 3.0 document that a Swagger 2.0 document means."""
    root = cast("_Object", _with_references_moved(root))
    shared = _objects(root.get("parameters"))
    bodies = {name: each for name, each in shared.items() if each.get("in") in ("body", "formData")}
    return {
        **{key: root[key] for key in ("info", "tags", "security", "externalDocs") if key in root},
        "openapi": "3.0.3",
        "servers": _servers(root),
        "paths": _paths(root, bodies),
        "components": {
            "schemas": root.get("definitions", {}),
            "parameters": {name: _parameter(each) for name, each in shared.items() if name not in bodies},
            "responses": {
                name: _response(each, _types(root, "produces"))
                for name, each in _objects(root.get("responses")).items()
            },
            "securitySchemes": {
                name: _security_scheme(each)
                for name, each in _objects(root.get("securityDefinitions")).items()
            },
        },
    }


def _objects(value: Any) -> dict[str, _Object]:
    """Return the members of an object that are objects."""
    pairs = cast("_Object", value).items() if isinstance(value, dict) else ()
    return {name: cast("_Object", each) for name, each in pairs if isinstance(each, dict)}


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _with_references_moved(value: Any) -> Any:
    """Return a copy in which references lead to the places that OpenAPI 3.0 has for their targets."""
    if isinstance(value, list):
        return [_with_references_moved(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    copy = {key: _with_references_moved(item) for key, item in cast("_Object", value).items()}
    reference = copy.get("$ref")
    if isinstance(reference, str):
        file, mark, fragment = reference.partition("#")
        for old, new in _MOVED.items():
            if not file and f"#{fragment}".startswith(old):
                copy["$ref"] = new + f"{mark}{fragment}".removeprefix(old)
    return copy


def _servers(root: _Object) -> list[_Object]:
    host, path = root.get("host"), root.get("basePath") or ""
    if not isinstance(host, str):
        return [{"url": path or "/"}]
    schemes = _types(root, "schemes", ("https",))
    return [
        {"url": f"{scheme}://{host}{path}"} for scheme in sorted(schemes, key=lambda each: each != "https")
    ]


def _types(node: _Object, key: str, default: tuple[str, ...] = (_JSON,)) -> tuple[str, ...]:
    return tuple(each for each in _items(node.get(key)) if isinstance(each, str)) or default


def _paths(root: _Object, bodies: dict[str, _Object]) -> _Object:
    paths = root.get("paths")
    if not isinstance(paths, dict):
        return {}
    translated = {path: _path_item(item, root, bodies) for path, item in _objects(paths).items()}
    return {**cast("_Object", paths), **translated}


def _untranslated(node: _Object) -> _Object:
    """Return the parameters that are not a list of objects: they stay, so that the reader refuses them."""
    given = node.get("parameters")
    is_list = isinstance(given, list | None)
    is_valid = is_list and all(isinstance(each, dict) for each in _items(given))
    return {} if is_valid else {"parameters": given}


def _parameters(node: _Object, bodies: dict[str, _Object]) -> list[_Object]:
    """Return the parameters of a path or an operation.

    A reference to a shared parameter of a body is followed: OpenAPI 3.0 has no such parameters.
    """
    found = [cast("_Object", each) for each in _items(node.get("parameters")) if isinstance(each, dict)]
    names = [str(each.get("$ref", "")).removeprefix("#/components/parameters/") for each in found]
    return [bodies.get(name, each) for name, each in zip(names, found, strict=True)]


def _path_item(item: _Object, root: _Object, bodies: dict[str, _Object]) -> _Object:
    shared = _parameters(item, bodies)
    written: _Object = {"parameters": [_parameter(each) for each in shared if not _is_of_body(each)]}
    for key, value in item.items():
        if key in _METHODS and isinstance(value, dict):
            of_path = [each for each in shared if _is_of_body(each)]
            written[key] = _operation(cast("_Object", value), root, bodies, of_path)
        elif key != "parameters":
            written[key] = value
    return {**written, **_untranslated(item)}


def _is_of_body(parameter: _Object) -> bool:
    return parameter.get("in") in ("body", "formData")


def _operation(node: _Object, root: _Object, bodies: dict[str, _Object], of_path: list[_Object]) -> _Object:
    if "$ref" in node:
        return node
    own = _parameters(node, bodies)
    of_body = [*of_path, *(each for each in own if _is_of_body(each))]
    produced = _types(node, "produces", _types(root, "produces"))
    written = {key: value for key, value in node.items() if key not in _REWRITTEN}
    written["parameters"] = [_parameter(each) for each in own if not _is_of_body(each)]
    written["responses"] = {
        status: _response(each, produced) for status, each in _objects(node.get("responses")).items()
    }
    if of_body:
        written["requestBody"] = _body(of_body, _types(node, "consumes", _types(root, "consumes", ())))
    return {**written, **_untranslated(node)}


def _body(parameters: list[_Object], consumed: tuple[str, ...]) -> _Object:
    whole = next((each for each in parameters if each.get("in") == "body"), None)
    if whole is not None:
        types = consumed or (_JSON,)
        content = {each: {"schema": whole.get("schema", {})} for each in types}
        return {"required": whole.get("required") is True, "content": content}
    fields = {str(each.get("name")): each for each in parameters}  # a later one replaces an earlier one
    schema = {
        "type": "object",
        "properties": {name: _schema_of_field(each) for name, each in fields.items()},
        "required": [name for name, each in fields.items() if each.get("required") is True],
    }
    has_file = any(each.get("type") == "file" for each in fields.values())
    types = tuple(each for each in consumed if each in (_FORM, _MULTIPART)) or (_FORM,)
    if has_file:
        types = (_MULTIPART,)  # whatever it consumes: no other form has files
    encoding = {name: _style(each) for name, each in fields.items() if "collectionFormat" in each}
    content = {each: {"schema": schema, "encoding": encoding} for each in types}
    return {"required": bool(schema["required"]), "content": content}


def _schema_of_field(field: _Object) -> _Object:
    schema = {key: value for key, value in field.items() if key not in _OF_PARAMETER}
    if schema.get("type") == "file":
        schema |= {"type": "string", "format": "binary"}
    return {**schema, "description": field["description"]} if "description" in field else schema


def _parameter(node: _Object) -> _Object:
    if "$ref" in node:
        return node
    written = {key: node[key] for key in ("name", "in", "description", "required") if key in node}
    written["schema"] = {key: value for key, value in node.items() if key not in _OF_PARAMETER}
    if node.get("type") == "array":
        written |= _style(node)
    return written


def _style(node: _Object) -> _Object:
    """Return how a list is written; what is not a text stays, so that the reader refuses it at its place."""
    given = node.get("collectionFormat", "csv")
    return _STYLES.get(given, {}) if isinstance(given, str) else {"style": given}


def _response(node: _Object, produced: tuple[str, ...]) -> _Object:
    if "$ref" in node:
        return node
    written = {"description": node.get("description", "")}
    schema = node.get("schema")
    if not isinstance(schema, dict):
        return written
    is_file = cast("_Object", schema).get("type") == "file"
    content = {"type": "string", "format": "binary"} if is_file else cast("_Object", schema)
    return {**written, "content": {each: {"schema": content} for each in produced}}


def _security_scheme(node: _Object) -> _Object:
    if node.get("type") == "basic":
        return {"type": "http", "scheme": "basic"}
    if node.get("type") != "oauth2":
        return node
    flow = _FLOWS.get(str(node.get("flow")), "implicit")
    kept = {key: node[key] for key in ("authorizationUrl", "tokenUrl", "scopes") if key in node}
    return {"type": "oauth2", "flows": {flow: kept}}
