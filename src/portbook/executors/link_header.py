"""The `Link` header of a response (RFC 8288): where further pages are, for the caller to read. Pure: no I/O.

Nothing follows a link. What an API puts into one is not trusted: a URL loses its user and password, its
fragment, and the parameters that hold the operator's credentials, by any name that a server may read as
theirs. What is too long, no link, or a URL that browsers read differently, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final
from urllib.parse import unquote_plus, urlsplit

from portbook.apis.query_names import TakenNames
from portbook.model import JSONObject

__all__ = ["links_of"]

# More than any API pages with: first, prev, next, last, and a few of its own.
_MAX_LINKS: Final = 16
_MAX_URL: Final = 2_048
_MAX_REL: Final = 128
_TARGET: Final = re.compile(r"[ \t,]*<([^<>]*)>")
# A parameter: its name, and a token or a quoted string.
_ATTRIBUTE: Final = re.compile(
    r"[ \t]*;[ \t]*([A-Za-z0-9!#$&+.^_`|~*-]+)[ \t]*(?:=[ \t]*(\"(?:[^\"\\]|\\.)*\"|[^\s\",;]*))?"
)
# Without a backslash, which browsers read as a slash: a user and a password may follow it.
_URL: Final = re.compile(r"[!-\[\]-~]+")
# A parameter of a query, after its separator; some servers accept a semicolon.
_PARAMETER: Final = re.compile(r"[&;]?([^&;=]*)[^&;]*")


def links_of(header: str, credential_names: AbstractSet[str] = frozenset()) -> tuple[JSONObject, ...]:
    """Return the links of a header that have a relation, each as an object with `url` and `rel`.

    Parameters of the query that a server may read as one of `credential_names` are taken out.
    """
    taken = TakenNames("", (), credential_names)
    found: list[JSONObject] = []
    for url, rel in _written(header):
        shown = _without_credentials(url, taken)
        if shown is not None and 0 < len(rel) <= _MAX_REL and rel.isascii() and rel.isprintable():
            found.append({"url": shown, "rel": rel})
            if len(found) == _MAX_LINKS:
                break
    return tuple(found)


def _written(header: str) -> Iterator[tuple[str, str]]:
    """Yield URL and relation of each link, up to what is none."""
    place = 0
    while (target := _TARGET.match(header, place)) is not None:
        place, rel = target.end(), None
        while (attribute := _ATTRIBUTE.match(header, place)) is not None:
            place = attribute.end()
            if attribute[1].lower() == "rel" and rel is None:  # RFC 8288, 3.3: only the first counts
                rel = _unquoted(attribute[2] or "")
        yield target[1], rel or ""


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _without_credentials(url: str, taken: TakenNames) -> str | None:
    """Return a URL without credentials, or None where it is none that can be given."""
    if len(url) > _MAX_URL or not _URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in ("", "http", "https"):
        return None
    if not parts.netloc and (parts.scheme or url.startswith("//")):
        return None  # browsers look for the host further on
    kept = [each[0] for each in _PARAMETER.finditer(parts.query) if not taken.is_fixed(unquote_plus(each[1]))]
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="".join(kept).lstrip("&;"), fragment="").geturl() or None
