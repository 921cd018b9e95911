"""Security schemes of an OpenAPI document, and which of them an operation requires. Pure: no I/O.

A requirement is a list of alternatives (one is enough), and each alternative is a list of schemes (all are
needed). An empty alternative means that an operation also works without credentials.

A malformed scheme costs no operation: it is one for which Portbook has no credential, and the operator is
told so. A malformed requirement does: it does not say whether credentials are needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from portbook.apis.openapi.document_files import BadOpenAPI, DocumentNode, Documents
from portbook.escaping import escaped
from portbook.tools.http_operation import CredentialUse, is_token

__all__ = ["Requirement", "SecurityScheme", "described", "read_requirement", "read_schemes"]

# Alternatives, each with the names of its schemes.
Requirement: TypeAlias = tuple[tuple[str, ...], ...]

# Longer than any real name; a document may come from a third party, and these names are shown.
_MAX_NAME: Final = 80
_QUERY_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,128}")


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """One scheme of a document."""

    name: str
    words: str
    """What it is, for messages: `apiKey in the header X-Key`."""
    use: CredentialUse | None
    """Where its credential is sent; None where Portbook cannot send one."""


def read_schemes(documents: Documents, root: DocumentNode) -> dict[str, SecurityScheme]:
    """Return the schemes of a document by name."""
    found: dict[str, SecurityScheme] = {}
    for name, node in root.at("components", "securitySchemes").members.items():
        try:
            found[name] = _scheme(name, documents.resolved(node))
        except BadOpenAPI:  # a reference without a target
            found[name] = SecurityScheme(name, "a scheme that cannot be read", None)
    return found


def read_requirement(root: DocumentNode, operation: DocumentNode) -> Requirement:
    """Return what `operation` requires: its own `security` if it has one, otherwise the document's.

    Raises `BadOpenAPI` where that is not a list of objects.
    """
    own = operation.at("security")
    node = root.at("security") if own.value is None else own
    is_list = isinstance(node.value, list | None)
    if not is_list or not all(isinstance(item.value, dict) for item in node.items):
        raise node.bad("security must be a list of objects")
    return tuple(tuple(item.members) for item in node.items)


def described(requirement: Requirement, schemes: Mapping[str, SecurityScheme]) -> str:
    """Return a requirement in words: `api_key (apiKey in the query key) or basic (http basic)`."""
    alternatives = (" and ".join(_shown(name, schemes) for name in names) for names in requirement if names)
    return " or ".join(alternatives)


def _shown(name: str, schemes: Mapping[str, SecurityScheme]) -> str:
    words = schemes[name].words if name in schemes else "a scheme that the document does not define"
    return f"{escaped(name, _MAX_NAME)} ({words})"


def _scheme(name: str, node: DocumentNode) -> SecurityScheme:
    kind = node.text("type") or ""
    if kind == "apiKey":
        return _api_key(name, node)
    if kind == "http":
        scheme = (node.text("scheme") or "").lower()
        words = f"http {escaped(scheme, _MAX_NAME)}"
        if scheme == "basic":
            return SecurityScheme(name, words, CredentialUse(name, "header", "Authorization", "basic"))
        if scheme == "bearer":
            return SecurityScheme(name, words, _bearer(name))
        return SecurityScheme(name, words, None)
    if kind in ("oauth2", "openIdConnect"):
        return SecurityScheme(name, f"{kind}, as a bearer token", _bearer(name))
    return SecurityScheme(name, escaped(kind, _MAX_NAME) or "a scheme without a type", None)


def _bearer(name: str) -> CredentialUse:
    return CredentialUse(name, "header", "Authorization", "bearer")


def _api_key(name: str, node: DocumentNode) -> SecurityScheme:
    place, key = node.text("in"), node.text("name") or ""
    words = f"apiKey in the {escaped(place or 'unknown place', _MAX_NAME)} {escaped(key, _MAX_NAME)}"
    if place in ("header", "cookie") and is_token(key):
        return SecurityScheme(name, words, CredentialUse(name, place, key))
    if place == "query" and _QUERY_NAME.fullmatch(key):
        return SecurityScheme(name, words, CredentialUse(name, "query", key))
    return SecurityScheme(name, words, None)
