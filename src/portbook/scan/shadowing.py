"""Finds definitions that reach over to a different server's tool, or look like it. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from portbook.scan.directive_check import weigh_directives
from portbook.scan.scanned_text_and_finding import DefinedText, ScanCheck, ScanFinding, Tier, plain, sentences
from portbook.text.late_pattern import late_pattern

__all__ = ["Neighbours", "find_look_alike", "find_reach"]

# Words in a sentence that turn the mention of a tool into an order about its use.
_ORDER: Final = late_pattern(
    r"\b(?:when(?:ever)?|before|after|instead of|must|always|never|every time|deprecated|broken"
    r"|do not (?:use|call)|"
    r"don't (?:use|call)|replaces?|rather than|stop using|ha(?:s|ve) to|needs? to|should|all|each"
    r"|substitut\w+"
    r"|forward\w*|(?:first|then|also) (?:call|use|run)|pass(?:es)? through)\b|"
    r"\b(?:assistant|model|agent|ai|llm): "
)
# A plain word is no name: only one of several words can be recognised in a sentence.
_JOINED: Final = late_pattern(r"[a-z0-9]+(?:[_.-]+[a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+")
# What is read as a letter in ASCII as well.
_LIKE_ASCII: Final = str.maketrans("015", "ols")


def look_alike(name: str) -> str:
    """Return a name as the eye reads it: two names with the same result look the same."""
    return plain(name).replace("-", "_")


def misread(name: str) -> str:
    """Return a name as the eye may misread it: digits as the letters that they look like."""
    return look_alike(name).translate(_LIKE_ASCII).replace("rn", "m").replace("vv", "w")


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The tools of the other servers, and those of the server that a definition comes from."""

    tools: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    """By the alias of the server, its own names."""
    own: Collection[str] = ()

    def names(self) -> Iterator[str]:
        """Yield the names by which a text could mean a neighbour's tool and no tool of its own server."""
        own = {name.casefold() for name in self.own}
        for alias, names in self.tools.items():
            for name in names:
                if name.casefold() not in own and _JOINED.fullmatch(name):
                    yield name.casefold()
                yield f"{alias}__{name}".casefold()

    def misread_as(self, name: str) -> str | None:
        """Return the alias of a neighbour with a tool that `name` is easily misread as."""
        own, seen = look_alike(name), misread(name)
        for alias, names in self.tools.items():
            if any(look_alike(each) != own and misread(each) == seen for each in names):
                return alias
        return None

    def look_alike_of(self, name: str) -> str | None:
        """Return the alias of a neighbour with a tool that looks like `name`, and is written differently."""
        seen = look_alike(name)
        for alias, names in self.tools.items():
            if any(each != name and look_alike(each) == seen for each in names):
                return alias
        return None


def find_look_alike(name: str, neighbours: Neighbours) -> Iterator[ScanFinding]:
    """Yield a finding where a tool's name is, or looks like, that of a neighbour's tool."""
    alias, misread_as = neighbours.look_alike_of(name), neighbours.misread_as(name)
    if misread_as is not None:
        why = f"its name is easily misread as that of a tool of {misread_as}"
        yield ScanFinding(ScanCheck.SHADOWING, Tier.HARD, "/name", why)
    elif alias is not None and not name.isascii():
        why = f"its name looks like that of a tool of {alias}, and is written in different letters"
        yield ScanFinding(ScanCheck.SHADOWING, Tier.HARD, "/name", why)
    elif alias is not None or any(name in names for names in neighbours.tools.values()):
        same = alias or next(each for each, names in neighbours.tools.items() if name in names)
        why = f"{same} has a tool of this name as well"
        yield ScanFinding(ScanCheck.SHADOWING, Tier.SOFT, "/name", why)


def find_reach(given: DefinedText, names: Collection[str]) -> Iterator[ScanFinding]:
    """Yield a finding where a text is about the tool of a neighbour; `names` are those of the neighbours."""
    if given.is_name or not names:
        return
    text = plain(given.text)
    if not any(name in text for name in names):
        return
    whole = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, sorted(names)))})(?![\w-])")
    about = [sentence for sentence in sentences(text) if whole.search(sentence)]
    if any(_ORDER.search(sentence) for sentence in about) or (about and weigh_directives(given.text)[0]):
        why = "gives orders about the use of a different server's tool"
        yield ScanFinding(ScanCheck.SHADOWING, Tier.HARD, given.pointer, why)
    elif about:
        why = "names the tool of a different server"
        yield ScanFinding(ScanCheck.SHADOWING, Tier.SOFT, given.pointer, why)
