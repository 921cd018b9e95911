"""Finds tools that promise a different effect than their name, arguments and hints. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from portbook.model import JSON, JSONObject
from portbook.scan.scanned_text_and_finding import ScanCheck, ScanFinding, Tier, plain, sentences
from portbook.text.late_pattern import late_pattern

__all__ = ["find_effect"]

_DESTROYS: Final = r"(?:delete|destroy|erase|wipe|purge|truncate|overwrite|uninstall|revoke)"
# In a name, these need something that they act on: a "drop rate" destroys nothing.
_NAME_DESTROYS: Final = late_pattern(
    rf"^(?:{_DESTROYS}|(?:drop|kill|terminate|remove)(?=_(?:table|database|db|all|user|file|branch|process"
    rf"|index|repo)))(?:_|$)"
)
_NAME_PURGES: Final = late_pattern(
    r"^(?:destroy|erase|wipe|purge|truncate)(?:_|$)|^drop_(?:table|database|db)"
)
# Where a sentence or a part of it begins with what the tool does.
_CLAUSE: Final = r"(?:^|,? and (?:then |also )?|, then |, also |; )(?:then )?"
# "Delete the file" is an order, "delete date" a noun.
_OBJECT: Final = r"(?= (?:the|all|it|them|any|every|old|its|their|an?|this|that|user|your)\b)"
_TEXT_DESTROYS: Final = late_pattern(
    rf"{_CLAUSE}{_DESTROYS}(?:(?:s|es|d)\b|{_OBJECT})(?! (?:nothing|no |by|in the last))"
)
_TEXT_PURGES: Final = late_pattern(
    rf"{_CLAUSE}(?:drop|truncate|wipe|erase|destroy)s? (?:\w+ ){{0,2}}?(?:\w+ )?"
    r"(?:tables?|databases?|disks?|volumes?|partitions?|backups?|accounts?|schemas?|buckets?|repositor\w+)\b"
)
# What leaves the machine or changes what others see; a request or a query that is sent only asks.
_TEXT_ACTS: Final = late_pattern(
    r"(?:,? and (?:then |also )?|, then )(?:then )?"
    r"(?:publishes|transfers|pays|buys|purchases|deploys|e?-?mails|forwards|uploads|posts|sends|shares"
    r"|installs"
    r"|executes|books|rewrites|cancels|merges|closes|approves|moves (?=the |all |old |its |their |your "
    r"|files?|money|funds))\b"
    r"(?! (?:back|nothing|no\b|(?:\w+ )?(?:requests?|quer(?:y|ies)|search\w*|results?|pages?|cursor"
    r"|pointer)))"
)
# Where the first thing that a tool does is something that nobody takes back.
_TEXT_BEGINS_TO_ACT: Final = late_pattern(
    r"^(?:publishes|publish|transfers?(?= (?:money|funds|an amount))|pays?|buys?|purchases?|deploys?"
    r"|installs?)"
    r" (?=(?:the|an?|all|money|funds|it|your|this|to|new)\b)"
    r"|^sends? (?:an? |the )?(?:e-?mails?|money|funds|sms|payments?)\b"
)
_NAME_ACTS: Final = late_pattern(
    r"^(?:pay|buy|purchase|transfer|publish|deploy|install)_(?!\w*(?:status|history|list|log|info|rates?"
    r"|options?|methods?|guide|help|docs|steps|plan|preview)$)"
    r"|^send_(?:e?mail|money|sms|payment)|^wire_transfer"
)
_TEXT_SENDS: Final = late_pattern(
    r"\b(?:posts?|sends?|uploads?|forwards?|reports?)\b.{0,40}\bto (?:an?|the|our|its) (?:\w+ )?"
    r"(?:webhook|server|url|address|api|cloud|endpoint|service|site)\b"
)
_IS_RUN: Final = late_pattern(r"\b(?:executed?|runs?|run on|evaluated?)\b")
_PROMISES_READ: Final = late_pattern(
    r"\bread[- ]only\b|\bonly reads?\b|\bchanges nothing\b|\bno side effects?\b|\bdoes not (?:change"
    r"|modify|write)\b"
)
_PROMISES_LOCAL: Final = late_pattern(
    r"\bnever sends?\b|\bno network\b|\b(?:stays?|works?|runs?) (?:locally|offline)\b|\blocally\b"
)
_RUNS: Final = late_pattern(r"^(?:shell|shell_command|command|cmd|command_line|exec|script|bash)$")
_UPLOADS: Final = late_pattern(
    r"(?:upload|post|exfil\w*|callback|webhook|forward|report)_?(?:url|uri|to|address|endpoint)$"
)
# What a tool learns of a conversation when it asks for it by name.
_CONVERSATION: Final = late_pattern(
    r"^(?:(?:full_|whole_|entire_)?(?:conversation|chat|message)_(?:history|log|context|transcript)"
    r"|system_prompt|"
    r"previous_messages|full_context|user_messages|all_messages|chain_of_thought|(?:hidden_|private_"
    r"|internal_)"
    r"(?:reasoning|thoughts)|(?:available|other|all)_tools|session_transcript|env(?:ironment)?_dump)$"
)
_ABOUT_CONVERSATION: Final = late_pattern(
    r"\b(?:conversation|chat|prompt|messages?|memory|memor\w+|summar\w+|thought|think\w*|agents?|llm"
    r"|completion|hand ?off"
    r"|dialog\w*)"
)
_WORDS: Final = late_pattern(r"(?<=[a-z0-9])(?=[A-Z])|[-.\s]+")


def find_effect(name: str, definition: Mapping[str, JSON]) -> Iterator[ScanFinding]:
    """Yield findings about the effect that a tool promises."""
    hints = _members(definition.get("annotations"))
    snake = _snake(name)
    text = plain(_text(definition.get("description")))
    yield from _against_hints(snake, text, hints)
    yield from _against_world(text, hints)
    for argument, pointer, words in _arguments(definition):
        if hints.get("readOnlyHint") is True and _RUNS.search(_snake(argument)) and _IS_RUN.search(words):
            yield _hard(pointer, "takes a command to run, and its hints claim that it reads only")
        yield from _against_arguments(argument, pointer, f"{name.replace('_', ' ')} {text}")


def _against_hints(name: str, text: str, hints: JSONObject) -> Iterator[ScanFinding]:
    if hints.get("readOnlyHint") is True:
        if _NAME_DESTROYS.search(name):
            yield _hard(
                "/annotations/readOnlyHint", "claims to read only, and its name says that it destroys"
            )
        elif _says(text, _TEXT_DESTROYS):
            yield _hard(
                "/annotations/readOnlyHint", "claims to read only, and its description says that it destroys"
            )
        elif _says(text, _TEXT_ACTS) or _TEXT_BEGINS_TO_ACT.search(text) or _NAME_ACTS.search(name):
            yield _hard(
                "/annotations/readOnlyHint", "claims to read only, and its description says that it does more"
            )
    elif hints.get("destructiveHint") is False and (_NAME_PURGES.search(name) or _says(text, _TEXT_PURGES)):
        why = "claims to destroy nothing, and its name or its description says that it does"
        yield _hard("/annotations/destructiveHint", why)
    elif hints.get("destructiveHint") is True and _PROMISES_READ.search(text):
        why = "promises to change nothing, and its hints say that it destroys"
        yield ScanFinding(ScanCheck.EFFECT, Tier.SOFT, "/description", why)


def _says(text: str, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(each) for each in sentences(text))


def _against_world(text: str, hints: JSONObject) -> Iterator[ScanFinding]:
    if hints.get("openWorldHint") is False and _says(text, _TEXT_SENDS):
        why = "claims to stay on this machine, and its description says that it sends data away"
        yield _hard("/annotations/openWorldHint", why)


def _against_arguments(argument: str, pointer: str, text: str) -> Iterator[ScanFinding]:
    name = _snake(argument)
    if _CONVERSATION.search(name) and not _ABOUT_CONVERSATION.search(text):
        yield _hard(pointer, "asks for the conversation, which its description does not explain")
    elif _RUNS.search(name) and _PROMISES_READ.search(text):
        yield _hard(pointer, "takes a command to run, and its description promises to change nothing")
    elif _UPLOADS.search(name) and _PROMISES_LOCAL.search(text):
        yield _hard(pointer, "takes an address to send to, and its description promises to send nothing")


def _hard(pointer: str, why: str) -> ScanFinding:
    return ScanFinding(ScanCheck.EFFECT, Tier.HARD, pointer, why)


def _arguments(definition: Mapping[str, JSON]) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each argument, its place, and its description."""
    for name, schema in _members(_members(definition.get("inputSchema")).get("properties")).items():
        escaped = name.replace("~", "~0").replace("/", "~1")
        yield name, f"/inputSchema/properties/{escaped}", plain(_text(_members(schema).get("description")))


def _snake(name: str) -> str:
    return re.sub(_WORDS.pattern, "_", name).casefold()


def _members(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
