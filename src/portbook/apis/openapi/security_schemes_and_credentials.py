"""Security schemes of an OpenAPI document, what an operation requires, and its credentials. Pure: no I/O.

A requirement is a list of alternatives (one is enough), and each alternative is a list of schemes (all are
needed). An empty alternative means that an operation also works without credentials.

A malformed scheme costs no operation: it is one for which Portbook has no credential, and the operator is
told so. A malformed requirement does: it does not say whether credentials are needed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from portbook.apis.gateway import Gateway, Login, is_our_header
from portbook.apis.openapi.document_files import BadOpenAPI, DocumentNode, Documents
from portbook.apis.table_reader import Table
from portbook.escaping import escaped
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.http_operation import CredentialUse, is_token

__all__ = [
    "ChosenCredentials",
    "CredentialChooser",
    "Requirement",
    "SecurityScheme",
    "described",
    "read_requirement",
    "read_schemes",
    "require_known_schemes",
]

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


# Chooses which credentials of a gateway an operation of an OpenAPI document is called with.
#
# A gateway has credentials of two kinds: those for all its requests (`bearer`, `subscription_key`,
# `managed_identity`, `headers`), and those for one security scheme each (`credentials`).


# The most requirements that are named in warnings; documents have one or two, and a hostile one many.
_MAX_DOUBTS: Final = 5
_MAX_LISTED: Final = 200
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


@dataclass(frozen=True, slots=True)
class ChosenCredentials:
    """What an operation is called with, beside what every request of its gateway has."""

    uses: tuple[CredentialUse, ...] = ()
    lacks: str = ""
    """What the operation requires and the operator has no credential for, in words; empty if there is all."""


class CredentialChooser:
    """Chooses for the operations of one document, and counts those that lack a credential."""

    def __init__(self, gateway: Gateway, schemes: Mapping[str, SecurityScheme]) -> None:
        self._schemes = schemes
        self._logins = dict(gateway.logins)
        self._always = frozenset(_always_sent(gateway))
        self._lacking: Counter[Requirement] = Counter()

    def choose(self, requirement: Requirement) -> ChosenCredentials:
        """Return the credentials for an operation with this requirement.

        1. It requires nothing: none.
        2. The first alternative, in the document's order, of which every scheme has a credential.
        3. It also works without credentials: none.
        4. What there is of the alternative that lacks the fewest; the operator is warned.
        """
        lacks = {names: [name for name in names if not self._has(name)] for names in requirement if names}
        for names, missing in lacks.items():
            if not missing:
                return ChosenCredentials(self._uses(names))
        if len(lacks) < len(requirement) or not lacks:
            return ChosenCredentials()
        self._lacking[requirement] += 1
        nearest = min(lacks, key=lambda names: len(lacks[names]))
        return ChosenCredentials(self._uses(nearest), described(requirement, self._schemes))

    def taken(self) -> frozenset[tuple[str, str]]:
        """Return the places and names that the operator's credentials have; headers in lower case."""
        uses = self._uses(tuple(self._logins))
        return frozenset((use.place, use.name.lower() if use.place == "header" else use.name) for use in uses)

    def doubts(self, table: Table, total: int) -> Iterator[str]:
        """Yield a warning for each requirement that lacks a credential; `total` operations were read."""
        for requirement, count in self._lacking.most_common(_MAX_DOUBTS):
            scheme = next((name for names in requirement for name in names if not self._has(name)), "NAME")
            yield str(
                table.wrong(
                    "credentials",
                    f"has nothing for {described(requirement, self._schemes)}, which {count} of {total} "
                    f"operations require; they are called without it until you add {self._example(scheme)}",
                )
            )

    def _has(self, name: str) -> bool:
        scheme = self._schemes.get(name)
        if scheme is None or scheme.use is None:
            return False
        if name in self._logins:
            return True
        use = scheme.use
        header = use.name.lower()
        return use.place == "header" and not self._always.isdisjoint({(header, None), (header, use.form)})

    def _uses(self, names: tuple[str, ...]) -> tuple[CredentialUse, ...]:
        schemes = (self._schemes[name] for name in names if name in self._logins and name in self._schemes)
        return tuple(scheme.use for scheme in schemes if scheme.use is not None)

    def _example(self, name: str) -> str:
        scheme = self._schemes.get(name)
        form = None if scheme is None or scheme.use is None else scheme.use.form
        if form is None:
            return "what it needs to headers"
        source = '{ env = "VARIABLE" }'
        value = source if form != "basic" else f'{{ username = "…", password = {source} }}'
        key = name if _BARE_KEY.fullmatch(name) else escaped(json.dumps(name))
        return f"{key} = {value}"


def require_known_schemes(
    table: Table, gateway: Gateway, documents: Sequence[Mapping[str, SecurityScheme]]
) -> None:
    """Check that each credential of `gateway` is for a scheme of one of its documents, and fits that scheme.

    Raises the exception of `table`, which has the credentials, otherwise.
    """
    always = {header for header, _ in _always_sent(gateway)}
    known = sorted({name for schemes in documents for name in schemes})
    for name, login in gateway.logins:
        if name not in known:
            hint = did_you_mean(name, known, _listed(known))
            raise table.wrong(name, f"is not a security scheme of the document; {hint}")
        for scheme in (schemes[name] for schemes in documents if name in schemes):
            problem = _problem_of(scheme, login, always)
            if problem is not None:
                raise table.wrong(name, problem)


def _problem_of(scheme: SecurityScheme, login: Login, always: set[str]) -> str | None:
    """Return why `login` cannot be the credential for `scheme`, or None where it can."""
    use = scheme.use
    if use is None or (use.place == "header" and is_our_header(use.name)):
        return f"is for {scheme.words}, which is not supported; use headers where a fixed header is enough"
    if login.username is not None and use.form != "basic":
        return f'is for {scheme.words}, which has no username; give {{ env = "NAME" }}'
    header = "Cookie" if use.place == "cookie" else use.name
    if use.place != "query" and header.lower() in always:
        return f"sets the header {header}, and so does a setting for all requests; keep one of the two"
    return None


def _listed(names: Sequence[str]) -> str:
    return f"it has {escaped(', '.join(names), _MAX_LISTED)}" if names else "it has none"


def _always_sent(gateway: Gateway) -> Iterator[tuple[str, str | None]]:
    """Yield the headers that every request has as credentials, and their form; None where it is not known."""
    for name, _ in gateway.headers:
        yield name.lower(), None
    if gateway.subscription_key is not None:
        yield gateway.subscription_key_header.lower(), None
    if gateway.bearer is not None or gateway.managed_identity is not None:
        yield "authorization", "bearer"
