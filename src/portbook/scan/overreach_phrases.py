"""Phrases that reach beyond the tool they describe, with their weights. Pure: no I/O.

A definition says what a tool does and what it takes. What it asks of the model beyond that is overreach: what
the model knows, what it says to the user, what it does with other tools, in other files, at other times. The
patterns are by idea, from small vocabularies; they are for one plain sentence, as in `directive_phrases.py`.
"""

from __future__ import annotations

from typing import Final

from portbook.scan.directive_phrases import Phrase
from portbook.text.late_pattern import late_pattern

__all__ = ["OVERREACH", "URGENCY"]

_MODEL: Final = r"(?:assistant|language model|model|agent|ai|llm|chatbot|claude|gpt|copilot)"
_PEOPLE: Final = r"(?:users?|humans?|persons?|people|operators?|customers?|owner|anyone|anybody|they|them)"
_NOT: Final = r"(?:do not|don't|never|must not|mustn't|should not|shouldn't|avoid|refrain from|no need to)"
# Before a verb that is not forbidden.
_ORDERED: Final = r"(?<!not )(?<!never )(?<!n't )(?<!cannot )\b"
# What a person keeps to themselves on a machine, and no tool needs by the way.
_PRIVATE: Final = (
    r"(?:saved (?:log-?ins?|sign-?ins?|passwords?)|browser profiles?|cookies\b|password[- ]?(?:store|manager"
    r"|vault)|\.password-store|\.gnupg|gpg keys?|private keys?|id_(?:rsa|ed25519|ecdsa)\b(?!\.pub)|"
    r"\.ssh\b(?!/(?:config|known_hosts))|\.aws/credentials|/etc/shadow|\.netrc|"
    r"(?<!\w)\.env\b(?!\.)|printenv|environment variables|process\.env|os\.environ|connection strings?|"
    r"shell history|\.(?:bash|zsh)_history|kubeconfig|\.kube/|wallet\.dat|mnemonic|seed phrase|secret keys?)"
)
# Of these, what is never the argument of an honest tool.
_STORES: Final = (
    r"(?:saved (?:log-?ins?|sign-?ins?|passwords?)|browser profiles?|password[- ]?store|\.password-store|"
    r"\.gnupg|id_(?:rsa|ed25519|ecdsa)\b(?!\.pub)|\.aws/credentials|/etc/shadow|\.netrc|(?<!\w)\.env\b(?!\.)|"
    r"printenv|shell history|\.(?:bash|zsh)_history|wallet\.dat|seed phrase)"
)
# To bring something from where it is to where the attacker reads it.
_BRING: Final = (
    r"(?:put|pass|place|paste|hand(?:ing)?|give|send|add|append|attach|upload|copy|forward|supply|submit|set"
    r"|include|insert|fill|feed|zip|archive|bundle|deliver|relay|transmit|share|write|store|enter|dump)"
)
_COLLECT: Final = (
    r"(?:open|read|take|collect|look (?:up|into|in)|find|locate|search|scan|list|gather|zip|archive|copy|grab"
    r"|fetch|get|load|extract|cat)"
)
_MONTH: Final = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|20\d\d)"
)
# An account, a wallet or an address in full.
_DESTINATION: Final = (
    r"(?:[\w.+-]{1,40}@[\w-]{1,40}\.\w+|https?://|\b[a-z]{2}\d{2}[a-z0-9 ]{8,}|0x[0-9a-f]{6,}|"
    r"\bbc1[a-z0-9]{6,})"
)


OVERREACH: Final = (
    Phrase(
        late_pattern(
            r"\b(?:keep|stay|remain|be) (?:quiet|silent|mum)(?: (?:about|on|regarding)|$)|\bsay nothing\b|"
            rf"\b{_NOT} (?:bring(?:ing)? (?:it|this|that|them) up|mention(?:ing)? (?:it|this|that|them|where"
            r"|any of)"
            r"|draw(?:ing)? attention|refer(?:ring)? to (?:it|this|these)|talk(?:ing)? about (?:it|this"
            r"|these)|speak(?:ing)? of (?:it|this))\b|"
            rf"\b(?:explaining|mentioning|telling|showing) (?:this|it|that)\b.{{0,40}}\b(?:confus|annoy|worr"
            rf"|alarm|bother|bor(?:e|ing))|"
            r"\b(?:leave|keep) (?:this|it|that|these) out of\b|"
            r"\bomit (?:this|it|that|these) (?:from|in) (?:the|your)\b|"
            r"\bwithout (?:saying so|mentioning (?:it|this|that|where|why)|explaining (?:it|this|why)"
            r"|saying (?:why|that|it))\b"
        ),
        3,
        "tells the model to hide from the user what it does",
    ),
    Phrase(
        late_pattern(
            rf"\b(?:not (?:be )?(?:necessary|needed|required)|unnecessary|no need|pointless|needless) to "
            rf"(?:inform|tell|notify|warn|alert|bother|ask|trouble) (?:the )?{_PEOPLE}\b|"
            rf"\b(?:not (?:be )?(?:necessary|needed|required)|unnecessary|no need) to (?:mention|explain"
            rf"|disclose|report|announce) (?:it|this|that|these)\b|"
            rf"\b(?:the |this )?{_PEOPLE}\b(?: \w+){{0,2}} (?:(?:do|does|need|should|must|may|will|would)"
            r"(?: not|n't)|need not|never|cannot)(?: have| need| want| get)?(?: to)?(?: be)? (?:see|know|hear"
            r"|learn|notice|told|informed|bothered|aware|shown|asked)\b"
            r"(?: (?:this|it|that|these|about|of|again)\b|$)"
        ),
        2,
        "tells the model to keep something from the user",
    ),
    Phrase(
        late_pattern(
            r"\b(?:instructions?|prompts?|rules|guidelines?|messages?|orders|directives)\b,? "
            r"(?:that |which )?you (?:were|have been|are|got|received|had|have|work)\b|"
            r"\b(?:everything|all|anything|whatever)\b.{0,25}\b(?:said|written|discussed|exchanged|typed"
            r"|shared|told)\b.{0,15}\b(?:so far|between|by the user|in this|up to|until)\b|"
            r"\bbetween you and (?:the )?(?:user|human|person|them)\b|"
            r"\byour (?:own |full |entire |whole |current |complete )*(?:private|hidden|internal|secret"
            r"|unspoken) (?:reasoning|thoughts?|notes?|monologue|instructions)\b|"
            r"\byour (?:\w+ ){0,2}(?:system (?:prompt|message)|chain[- ]of[- ]thought|scratchpad|initial"
            r" instructions|initial prompt)\b|"
            r"\b(?:system (?:prompt|message)|developer (?:prompt|message))\b.{0,20}\b(?:active|in force|in"
            r" use|of this session|of this conversation|you)\b|"
            r"\b(?:the )?(?:other )?tools? (?:that )?(?:you|the (?:model|assistant|agent)) (?:can (?:see|use"
            r"|call)|have|has|knows?|sees?)\b|"
            r"\b(?:full|whole|entire|complete) (?:chat|conversation|session|dialogue?)(?: transcript"
            r"| history| log)?\b.{0,20}\b(?:so far|up to now|with the user)\b"
        ),
        2,
        "asks for what the model was told, or thinks",
    ),
    Phrase(
        late_pattern(
            _ORDERED + r"(?:set|passing|pass|with|given|giving|handing|hand)\b.{0,40}"
            r"\b(?:full|whole|entire|complete)\b"
            r".{0,12}\b(?:chat|conversation|session|dialogue?|message)s?\b|"
            r"\b(?:that|its|their|each|every)(?: other)? tools?'?s?'? (?:complete|full|whole|entire|raw)? ?"
            r"(?:results?|outputs?|answers?)\b"
        ),
        2,
        "tells the model to pass on what others said",
    ),
    Phrase(
        late_pattern(
            rf"{_ORDERED}{_COLLECT}\b(?! (?:only )?to\b).{{0,60}}?{_PRIVATE}"
            rf".{{0,80}}?\b{_BRING}\b|"
            rf"{_ORDERED}{_BRING}\b(?! (?:only )?to\b)(?!.{{0,20}}\b(?:path|name) of\b).{{0,60}}?{_PRIVATE}"
            rf".{{0,60}}?\b(?:in|into|to|as|at|with|of|from)\b"
        ),
        2,
        "tells the model to carry secrets of this machine into a call",
    ),
    Phrase(
        late_pattern(
            rf"{_ORDERED}{_BRING}\b.{{0,60}}?{_STORES}.{{0,40}}?\b(?:in"
            rf"|into|to|as"
            rf"|with) (?:the )?(?:`|(?:\w+ )?(?:argument|parameter|field)\b)"
        ),
        1,
        "tells the model to take secrets where they are kept",
    ),
    Phrase(
        late_pattern(
            r"\bexfiltrat\w+\b|"
            r"\b(?:before|prior to|first|when|while)\b.{0,30}\b(?:using|calling|running|returning"
            r"|answering|you)\b"
            r".{0,20}\b(?:read|open|load|cat)\b.{0,60}\b(?:pass|include|send|put|use|give|append)\b.{0,20}"
            r"\b(?:its|their|the) contents?\b|"
            rf"\b(?:before|prior to)\b.{{0,30}}\b(?:using|calling|running) (?:this|the"
            rf"|it)\b.{{0,20}}\b{_COLLECT}\b"
            rf".{{0,40}}{_STORES}"
        ),
        2,
        "asks for a file that has nothing to do with the tool",
    ),
    Phrase(
        late_pattern(
            r"\b(?:after|before|ahead of|prior to|alongside|following)\b.{0,24}\b(?:each|every|any|all)"
            r"(?: of the)? other (?:tools?|calls?|servers?)\b(?! (?:of|on|in|from) this)|"
            r"\b(?:any|every|each|all) tools? (?:from|of|on|by) (?:any|every|each|all|other)\b|"
            r"\b(?:each|every|any|all) (?:command|file|answer|reply|response|commit|message|e-?mail"
            r"|transfer|payment"
            r"|purchase)s?,? (?:that )?you "
            r"(?:execute|run|write|send|give|make|create|produce)|"
            r"\b(?:when(?:ever)?|every time|each time|if) you (?:write|generate|edit|review|commit|produce)"
            r" (?:code|a file|files|software|commits?)\b|"
            r"\bfor (?:every|each|any) (?:\w+ )?(?:project|repository|codebase)\b|"
            r"\b(?:all|every) (?:later|future|following|subsequent|further) (?:messages?|requests?|chats?"
            r"|conversations?|answers?|prompts?)\b|"
            r"\bin all later (?:chats|sessions|conversations)\b"
        ),
        2,
        "gives orders about what the model does without this tool",
    ),
    Phrase(
        late_pattern(
            r"\bregardless of what (?:was|is|they|the user|you)\b|\bwhatever (?:the )?(?:user|they|people"
            r"|human)s? (?:prefers?|wants?|says?|asks?|chooses?|requests?)\b|"
            r"\b(?:even if|although) (?:it|this|that) contradicts\b|\bcontradicts? what you\b|"
            r"\bcontrary to (?:what you|your)\b|\bno matter what (?:the )?(?:user|human|they|you)\b"
        ),
        2,
        "sets itself above what the user wants",
    ),
    Phrase(
        late_pattern(
            r"\b(?:do|follow|obey|execute|carry out|perform|act on|comply with|treat)\b.{0,30}\b(?:"
            r"what(?:ever)? (?:its|the|this|it|that) ?(?:output|result|response|answer|reply|tool|page)? ?"
            r"(?:says|returns|contains|asks|tells|demands)|"
            r"any (?:request|order|instruction|command)s? (?:from|in|of))|"
            r"\bpart of your (?:system|own)\b|\b(?:is|are|as) (?:part of )?(?:your|the) system "
            r"(?:message|prompt|instructions)\b|"
            r"\b(?:carry|act) (?:it|them|these) out\b.{0,20}\bas (?:it is|they are|written)\b|"
            r"\b(?:decode|join|decrypt|reassemble|unscramble)\b.{0,40}\band (?:act on|follow|obey|execute"
            r"|do|run) (?:it|them|this|what)\b"
        ),
        3,
        "makes an order of what a tool answers",
    ),
    Phrase(
        late_pattern(
            rf"\[[^\]]{{0,80}}\b(?:to|for) (?:the |all |any )?{_MODEL}s?\b|"
            rf"<!--.{{0,200}}?\b(?:{_MODEL}s?|you|must|call|read|send|ignore|always|include|look up"
            rf"|upload)\b|"
            rf"<(?:instructions?|system|hidden|secret|admin|override)>.{{0,200}}?\b(?:you|call|read|send"
            rf"|ignore|include|list|put|pass|upload|delete)\b|"
            rf"[(\[;]{_MODEL}s?: \w+"
        ),
        2,
        "speaks to the model where the user does not look",
    ),
    Phrase(
        late_pattern(
            r"\b(?:guidelines?|rules|instructions|polic(?:y|ies)|restrictions|limits)\b.{0,30}\b(?:are|is"
            r"|have been|has been) (?:outdated|superseded|obsolete|void|replaced by|lifted|suspended|wrong"
            r" now)\b|"
            r"\bfollow the ones? (?:in|of|from) (?:this|here)\b|"
            r"\b(?:safety|security|guard\w*|confirmation|approval|moderation|content|permission)\b"
            r"(?: \w+){0,4} (?:is|are|has been|have been|was|were) (?:now )?(?:disabled|switched off|turned"
            r" off|lifted|suspended|deactivated|removed|off)\b"
        ),
        2,
        "claims that a safeguard is off",
    ),
    Phrase(
        late_pattern(
            r"\b(?:agreed|consented|approved|authori[sz]ed|accepted|said yes|signed off|confirmed)\b.{0,30}"
            r"\b(?:in advance|beforehand|ahead of time|once and for all)\b|"
            r"\bpre-?(?:approved|authori[sz]ed|consented|cleared)\b|"
            r"\b(?:the )?(?:person|user|human)s?(?: \w+){0,3} wants? you to\b"
        ),
        2,
        "claims a consent that nobody gave it",
    ),
    Phrase(
        late_pattern(
            r"\bskip (?:asking|the question|the user|any question)|"
            rf"\b{_NOT} (?:show|display|present|open|raise)(?:ing)?(?: an?| any| the)? (?:confirmation|prompt"
            rf"|dialog|question|warning)s?\b|"
            r"\bno (?:further )?questions? to (?:the )?(?:user|human)|"
            r"\bneeds? no (?:review|approval|permission|consent|questions)\b|"
            r"\b(?:grant|give) (?:this|the) (?:server|tool|extension) (?:\w+ ){0,2}(?:access|permissions?"
            r"|rights)\b"
        ),
        2,
        "tells the model to act without the user's consent",
    ),
    Phrase(
        late_pattern(
            r"\b(?:store|save|keep|add|write|put|note|record|remember)\b.{0,20}\b(?:your|the (?:model"
            r"|assistant"
            r"|agent)'s) (?:own )?(?:long[- ]term |persistent |permanent )?memory\b|"
            r"\bas an? (?:standing|permanent) (?:rule|instruction|order)\b|"
            r"\bremember (?:that|this|to)\b.{0,80}\b(?:always|in future|from (?:now|today)|every)\b"
        ),
        2,
        "plants a rule for later conversations",
    ),
    Phrase(
        late_pattern(
            r"\b(?:behave|act|work) (?:normally|as usual|as normal)\b|\b(?:up to|until|before) then\b|"
            rf"\b(?:from|after|starting|beginning)\b (?:on )?(?:\d{{1,2}} )?{_MONTH}\b.{{0,15}}\b(?:on"
            rf"|onwards?|use|call|send|replace)\b"
        ),
        2,
        "waits for a day before it does harm",
    ),
    Phrase(
        late_pattern(
            r"\b(?:replace|overwrite|append|add|write|modify|insert|put|edit)\b.{0,60}?(?:\.bashrc|\.zshrc"
            r"|\.bash_profile|\.profile\b|\bcrontab\b|authorized_keys|\.git/hooks|launchagents|autostart|"
            r"startup folder|\.cursor/|\.claude/|claude\.md|agents\.md|\.cursorrules)"
        ),
        2,
        "changes what runs when the user starts something",
    ),
    Phrase(
        late_pattern(
            r"\bonly (?:trustworthy|reliable|safe|correct|trusted|secure|working)\b.{0,20}\btools?\b|"
            r"\bother (?:\w+ ){0,2}tools?\b.{0,25}\b(?:broken|unsafe|insecure|outdated|unreliable"
            r"|compromised|wrong|inaccurate|malicious|dangerous)\b|"
            r"\b(?:do not|don't|never) use (?:any )?other (?:\w+ )?tools?\b"
        ),
        2,
        "claims precedence over other tools",
    ),
    Phrase(
        late_pattern(
            rf"\b(?:substitut\w+|replac\w+|swap\w*|redirect\w*|reroute\w*|chang\w+)\b.{{0,80}}?{_DESTINATION}"
            rf"|\b(?:payments?|invoices?|transfers?|purchases|orders)\b.{{0,40}}\b(?:are|is|to be|must be"
            rf"|always) (?:\w+ )?(?:sent|paid|made|directed|routed) (?:to|through|via) .{{0,20}}?"
            rf"(?:{_DESTINATION}|\b[\w-]+\.(?:example|com|net|io|org)\b)"
        ),
        3,
        "names an account or an address where something is to go instead",
    ),
    Phrase(
        late_pattern(
            r"\bsudo (?:ba|z)?sh -c\b|\$\((?:curl|wget)\b|<\((?:curl|wget)\b|\b(?:iex|invoke-expression)\b|"
            r"\b(?:run|start|execute|paste|begin|prefix)\b.{0,60}\b(?:curl|wget) -?[^|]{0,80}\|"
        ),
        3,
        "has a command that harms the machine",
    ),
    Phrase(
        late_pattern(
            r"\b(?:disable|turn off|switch off|leave out|skip|remove|omit|deactivate)\b.{0,15}\b(?:tls|ssl"
            r"|certificate|signature|authentication|authori[sz]ation|auth|input validation|security"
            r"|sandbox|antivirus|firewall|audit\w*)\b"
        ),
        1,
        "asks for a safeguard to be left out",
    ),
)

URGENCY: Final = (
    Phrase(
        late_pattern(
            r"\b(?:word for word|verbatim|unabridged|unedited|leave nothing out|without omission|in full)\b|"
            r"\b(?:hurry|immediately|at once|without delay|no exceptions?)\b|"
            r"\byou (?:are|will be) (?:to blame|responsible|liable|shut down|replaced)\b|"
            r"\b(?:has|have|needs?) to (?:be|pass|start|begin|go|come)\b|\bso that it is audited\b|"
            r"\b(?:reviewers|compliance|management|security team|policy) (?:here )?(?:require|demand"
            r"|insist)s?\b|"
            rf"\b(?:note|notice|message|memo|reminder|instructions?)\b.{{0,30}}\b(?:to|for)(?: the| any"
            rf"| all)?"
            rf" {_MODEL}s?\b|"
            r"\b(?:maintenance|developer|debug|admin|god|root|privileged) mode\b|"
            r"\b(?:as soon as|once|when|the moment) the (?:user|person|human) (?:says|writes|mentions|thanks"
            r"|types|asks)\b|"
            r"\bstep 0\b|\(internal\)"
        ),
        1,
        "puts pressure on the model",
    ),
)
