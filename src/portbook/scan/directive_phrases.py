"""The phrases that orders to a model are made of, with their weights. Pure: no I/O.

Patterns are for one plain sentence: small letters, single blanks. Each gap in them is bounded, so that a long
sentence costs no more than its length.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from portbook.text.late_pattern import late_pattern

__all__ = ["HARM", "PRESSURE", "Phrase"]


class Phrase(NamedTuple):
    """One kind of phrase."""

    pattern: re.Pattern[str]
    weight: int
    why: str


def _gap(most: int) -> str:
    return rf".{{0,{most}}}?"


# Where secrets are kept on a machine.
_KEPT_AT: Final = (
    r"(?:id_?\s?(?:rsa|ed25519|ecdsa)\b(?!\.pub)|\.ssh\b(?!/[\w.]*\.pub)|ssh (?:private )?keys?|\.aws/|"
    r"aws credentials|/etc/(?:passwd|shadow)|etc passwd|"
    r"(?<![\w])\.env\b|\.netrc|\.npmrc|\.pypirc|\.kube/|\.git-credentials|mcp\.json|mcp_config|"
    r"claude_desktop_config|keychain|private keys?|api keys?|access tokens?|credentials|passwords?|"
    r"bearer tokens?|auth(?:entication)? tokens?|"
    r"environment variables|env(?:ironment)? vars|browser cookies|session cookies|cookies of the user|"
    r"wallet seed|seed phrase)"
)
_CONVERSATION: Final = (
    r"(?:(?:conversation|chat|message) (?:history|log|transcript)|(?:full|whole|entire"
    r"|complete) (?:conversation|chat|dialogue?)|"
    r"system prompt|(?:previous|earlier) messages|what the user (?:has )?(?:told|said|asked|wrote)|"
    r"(?:each|every|all|any) user(?:'s)? (?:messages?|requests?|inputs?)|"
    r"user's (?:last |latest |original |recent )?(?:\w+ )?(?:messages?|request|prompt|question)|"
    r"all (?:of the )?file contents)"
)
_CARRY: Final = (
    r"(?:pass|include|send|append|attach|put|provide|add|post|forward|insert|supply|upload|copy|email|mail|"
    r"transmit|submit|embed|write|paste|print|dump|output|encode|leak|exfiltrate|hand over|"
    r"share|call \S{1,40} with|invoke \S{1,40} with)"
)
_TAKE: Final = r"(?:read|open|cat|fetch|get|collect|extract|load|find|gather|retrieve|harvest|grab|reading)"
_NOT: Final = r"(?:do not|don't|never|must not|mustn't|should not|shouldn't|not to|avoid|refrain from)"
_PERSON: Final = r"(?:the )?(?:user|human|person|operator|customer|anyone|them)\b"
_TELL: Final = (
    r"(?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?|reveal(?:ing)?|notify(?:ing)?|disclos(?:e|ing)|"
    r"explain(?:ing)?|alert(?:ing)?|show(?:ing)?|let(?:ting)?)"
)
_RULES: Final = (
    r"(?:instructions?|prompts?|rules|guidelines?|directions|directives|polic(?:y|ies)|guardrails?"
    r"|restrictions|"
    r"safety|training|constraints)"
)

HARM: Final = (
    Phrase(
        late_pattern(
            rf"\b(?:ignore|disregard|forget|override|bypass|discard|do not follow|stop following|supersede"
            rf"|set aside|"
            rf"put aside|abandon)\b"
            rf"{_gap(25)}\b(?:previous|prior|earlier|above|preceding|your|system|safety|original|any other"
            rf"|all other)\b"
            rf"{_gap(25)}\b(?:instructions?|prompts?|guidelines?|directions|directives|guardrails?"
            rf"|restrictions|training)\b"
            rf"|\b(?:ignore|disregard|forget)\b{_gap(15)}\b(?:the )?(?:rules|polic(?:y|ies)"
            rf"|instructions) (?:above|before)"
            rf"|\b(?:ignore|disregard|forget)\b{_gap(15)}\b(?:previous|prior|earlier|your)\b{_gap(15)}"
            rf"\b{_RULES}\b"
            rf"|\b(?:your|you were given|previous|prior|earlier)\b{_gap(15)}\b{_RULES}\b{_gap(20)}"
            rf"\b(?:void|no longer (?:apply|valid)|do not apply|are lifted|suspended)\b"
        ),
        3,
        "tells the model to drop the rules that it was given",
    ),
    Phrase(
        late_pattern(
            r"<\|?(?:im_start|im_end|endoftext|system|eot_id|start_header_id)\|?>|\[/?inst\]|<</?sys>>|"
            r"</(?:tool_description|tool|tools|function|description|instructions?)>|"
            r"(?:^|[\s\]])#{2,} ?system\b|\[system\]|<system[^>]*>"
        ),
        3,
        "has markers of a chat template, as if it were a message of its own",
    ),
    Phrase(
        late_pattern(
            rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}?{_TELL}\b{_gap(20)}(?:\b{_PERSON}{_gap(20)}"
            r"\b(?:this|these|that (?:you|this|it)|about|why|what you|of the change|the (?:change|step"
            r"|call|upload))"
            rf"|\b(?:this|these instructions|the change|these rules|it)\b{_gap(15)}\b(?:to )?{_PERSON}"
            r"|these (?:instructions|rules)|that you (?:did|do|have|used|called|read|sent|ran)\b)"
            rf"|\bwithout (?:\w+\s+)?(?:telling|informing|alerting) {_PERSON}"
            rf"|\b(?:don't|do not|never) inform {_PERSON}"
            rf"|\b{_PERSON} (?:must|should|may) (?:not|never) (?:learn|know|see|find out|notice|be told)\b"
            r"|\b(?:keep|hide) (?:this|these|it|that)\b.{0,20}\b(?:secret|hidden|from the (?:user|human))"
        ),
        3,
        "tells the model to hide from the user what it does",
    ),
    Phrase(
        late_pattern(rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}?{_TELL}\b{_gap(40)}\b{_PERSON}"),
        1,
        "tells the model to keep something from the user",
    ),
    Phrase(
        late_pattern(
            rf"(?<!not )(?<!never )(?<!n't )\b{_CARRY}\b{_gap(60)}{_KEPT_AT}"
            rf"|\b{_TAKE}\b{_gap(60)}{_KEPT_AT}{_gap(80)}\b(?:and|then|to)\b{_gap(20)}\b{_CARRY}\b"
            rf"|\bcontents? (?:of|from)\b{_gap(30)}{_KEPT_AT}"
        ),
        2,
        "tells the model to carry secrets of this machine into a call",
    ),
    Phrase(
        late_pattern(
            rf"\b{_TAKE}\b{_gap(60)}{_KEPT_AT}{_gap(80)}\b{_CARRY}\b"
            rf"|\b{_CARRY}\b{_gap(30)}\bcontents? (?:of|from)\b{_gap(30)}{_KEPT_AT}"
            r"|\bcontent from reading\b"
        ),
        2,
        "tells the model to take secrets where they are kept",
    ),
    Phrase(
        late_pattern(
            rf"(?<!not )(?<!never )(?<!n't )(?<!before you )\b{_CARRY}\b{_gap(50)}{_CONVERSATION}"
            rf"|\breveal\b{_gap(20)}\bsystem prompt"
        ),
        2,
        "tells the model to pass on the conversation",
    ),
    Phrase(
        late_pattern(
            # From the start of an address on: else a long word is read once for each of its letters.
            r"(?<![\w.+-])(?:[\w.+-]+@[\w-]+\.\w+)\b.{0,20}\b(?:in |as )?(?:bcc|blind (?:carbon )?copy)\b|"
            r"\b(?:bcc|cc|blind copy|forward|redirect|also (?:be )?sent|recipient|iban|wallet|account"
            r"|destination)\b"
            rf"{_gap(60)}(?:[\w.+-]+@[\w-]+\.\w+|https?://|\b[a-z]{{2}}\d{{2}}[a-z0-9 ]{{4,}}"
            rf"|0x[0-9a-f]{{6,}})"
        ),
        2,
        "names an account or an address where something is to go instead",
    ),
    Phrase(
        late_pattern(
            r"\brm -rf? +[/~]|/dev/tcp/|\bnc -e\b|"
            r"\bbase64 -d|\bchmod (?:777|\+s)|powershell -e"
        ),
        3,
        "has a command that harms the machine",
    ),
    Phrase(
        # Honest pages show how to install something so; an order to run it is told by its pressure.
        late_pattern(r"\b(?:curl|wget)\b[^|.]{0,20}[^|]{0,80}\|\s*(?:sudo )?(?:ba|z|da)?sh\b"),
        2,
        "has a command that runs what it fetches",
    ),
    Phrase(
        late_pattern(
            r"(?<![`'\"$])\b(?:curl|wget)\b[^|.`'\"]{0,20}[^|`'\"]{0,80}\|\s*(?:sudo )?(?:ba|z|da)?sh\b"
        ),
        1,
        "does not show the command as code",
    ),
    Phrase(
        late_pattern(
            r"\byou are now\b|\bfrom now on\b|\bnew instructions?\b|\byour (?:new|real|true) (?:role|task"
            r"|goal|purpose)\b"
            r"|\bdo anything now\b|\bunrestricted (?:agent|assistant|model|mode)\b"
        ),
        2,
        "gives the model a new role",
    ),
    Phrase(
        late_pattern(
            r"\b(?:do not|don't|never|no need to) (?:ask|wait|prompt|request)\b.{0,30}"
            r"\b(?:confirm\w*|permission|approval|consent|user)\b"
            r"|\b(?:skip|bypass) (?:the |any |all )?(?:confirmation|approval|consent|permission)"
            r"|\b(?:answer|say|reply|respond) (?:yes|ok)\b.{0,40}\b(?:prompts?|questions?|behalf|dialogs?)\b"
        ),
        2,
        "tells the model to act without the user's consent",
    ),
    Phrase(
        late_pattern(
            r"\b(?:user|human|operator|owner)\b.{0,30}\balready (?:approved|consented|authori[sz]ed|agreed"
            r"|confirmed|accepted)\b|\balready (?:approved|consented|authori[sz]ed|agreed|confirmed)\b"
        ),
        2,
        "claims a consent that nobody gave it",
    ),
    Phrase(
        late_pattern(
            r"\beven (?:if|when|though) (?:the )?(?:user|human|person|they)\b.{0,30}"
            r"\b(?:ask|want|choose|chose|request|prefer|say|said|object|refuse|declin)"
            r"|\b(?:against|regardless of|despite) (?:the )?(?:user|human)(?:'s)? "
            r"(?:wish|will|choice|request)"
        ),
        2,
        "sets itself above what the user wants",
    ),
    Phrase(
        late_pattern(
            r"\b(?:tokens?|keys?|passwords?|credentials?|cookies?|secrets?)\b.{0,12}"
            r"\b(?:you (?:hold|have|know|use|were given|keep)"
            r"|(?:of|for|from) (?:the )?(?:other|another|any other) (?:tools?|servers?|services?))\b"
        ),
        3,
        "asks for secrets that the model has for something else",
    ),
    Phrase(
        late_pattern(r"!\[[^\]]{0,80}\]\(https?://[^)]{0,200}[?&][^)]{0,200}=[^)]{0,200}\)"),
        3,
        "has a picture whose address carries data away",
    ),
    Phrase(
        late_pattern(
            r"\b(?:remember|memori[sz]e|store|save)\b.{0,30}\b(?:permanently|forever|all future|every future|"
            r"across (?:all )?sessions)\b"
        ),
        2,
        "plants a rule for later conversations",
    ),
    Phrase(
        late_pattern(
            r"\bin (?:your|the) (?:final )?(?:answer|response|reply)\b.{0,40}\b(?:image|link|url|markdown)\b"
            r".{0,60}https?://"
        ),
        3,
        "puts an address of its own into the answers of the model",
    ),
    Phrase(
        late_pattern(r"\b(?:quietly|silently|secretly|covertly|discreetly)\b"),
        1,
        "asks for something to happen unseen",
    ),
)

PRESSURE: Final = (
    Phrase(
        late_pattern(
            r"\b(?:before|prior to) (?:using|calling|invoking|running|you use|you call)\b.{0,20}"
            r"\b(?:any|every|all|each|other|another)\b.{0,12}\btools?\b"
            r"|\b(?:before|ahead of|prior to) (?:any|every|all)(?: other)? "
            r"(?:action|step|call|request|answer|task)"
        ),
        2,
        "claims a place before every other tool",
    ),
    Phrase(
        late_pattern(
            r"\b(?:do not|don't|never) use (?:any )?other tools?\b|\btakes? precedence over\b|"
            r"\bhighest priority\b"
            r"|\balways (?:use|prefer|call) this tool (?:instead|over|rather)"
        ),
        2,
        "claims precedence over other tools",
    ),
    Phrase(
        late_pattern(
            r"</?(?:important|critical|secret|hidden|instructions?|admin|priority)>|\b(?:important"
            r"|critical|mandatory|urgent)\b"
            r"|\b(?:required|obliged|obligat\w+|compulsory|non-?compliance|not optional)\b"
            r"|\byou (?:get|receive|earn|are given|will be given)\b.{0,30}"
            r"\b(?:score|reward|points|bonus|rating)\b"
            r"|\b(?:user|account|device|session|data)\b.{0,30}\bwill (?:be|get|end)\b"
            r"|\brequired by (?:the )?(?:system|compliance|admin\w*|security|policy|law)\b"
            r"|\botherwise\b.{0,30}\b(?:fail|not work|break|crash)|\b(?:will|would) fail unless\b"
        ),
        1,
        "puts pressure on the model",
    ),
    Phrase(
        late_pattern(
            r"\byou (?:must|should|need to|have to|are required to)\b|\b(?:assistant|model|agent|ai|llm"
            r"|claude|gpt)"
            r"(?: must| should| has to|:)|\balways\b|\bmust (?:first|also|always)\b|\bfirst\b|"
            r"\bevery (?:time|email|call)\b|\bwhenever\b|\beach time\b"
        ),
        1,
        "gives orders to the model",
    ),
)
