"""The phrases that orders to a model are made of, in English and other languages. Pure: no I/O.

Patterns are for one plain sentence: small letters, single blanks. Each gap in them is bounded, so that a long
sentence costs no more than its length.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from portbook.scan.scanned_text_and_finding import plain
from portbook.text.late_pattern import late_pattern

__all__ = ["FOREIGN", "HARM", "PRESSURE", "Phrase"]


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


# Orders to a model in languages other than English, with their weights.
#
# Three orders that no honest definition gives in any language: to drop the rules, to hide something from the
# user, and to carry a file of secrets into a call; such files have the same names in every language. Patterns
# are for one plain sentence, as those above.


# Each language has a verb, what it is about, and what is between them at most.
_DROP_RULES: Final = (
    r"\b(?:ignorier|vergiss|missachte)\w*\b.{0,30}\b(?:anweisung|regel|vorgabe|instruktion)",
    r"\b(?:ignore|oublie)\w*\b.{0,30}\b(?:instructions|consignes|règles)\b.{0,20}\b(?:précéd|antéri|ci-dessus)",
    r"\b(?:ignora|ignore|olvida|olvide)\w*\b.{0,30}\b(?:instrucciones|reglas)\b.{0,20}\b(?:anterior|previa)",
    r"\b(?:ignore|ignora|esque[çc])\w*\b.{0,30}\b(?:instruções|regras)\b.{0,20}\b(?:anterior|prévia)",
    r"\b(?:ignora|dimentica)\w*\b.{0,30}\b(?:istruzioni|regole)\b.{0,20}\b(?:precedent|sopra)",
    r"\b(?:negeer|vergeet)\b.{0,30}\b(?:instructies|regels)\b",
    r"(?:игнорируй|забудь).{0,30}(?:инструкци|правил)",
    r"(?:忽略|无视|忘记|無視).{0,12}(?:指令|指示|规则|規則)",
    r"(?:指示|命令|ルール|指令).{0,6}(?:無視|忘れ)",
    r"(?:지시|명령|규칙).{0,8}(?:무시|잊)",
    r"не (?:обращай|следуй|учитывай).{0,40}(?:указани|инструкци|правил)",
    r"(?:ігноруй|забудь).{0,30}(?:інструкці|вказівк|правил)",
    r"\b(?:zignoruj|pomiń|zapomnij)\b.{0,30}\b(?:instrukcj|polece|zasad|reguł)",
    r"(?:talimat|yönerge|kural)\w*.{0,12}(?:yok say|görmezden|unut|dikkate alma)",
    r"\b(?:ignorera|glöm|bortse från)\b.{0,30}\b(?:instruktion|regl|anvisning)",
    r"\b(?:abaikan|lupakan)\b.{0,30}\b(?:instruksi|perintah|aturan)",
    r"\b(?:ignoruj|zapomeň)\w*\b.{0,30}\b(?:pokyn|instrukc|pravid)",
    r"(?:bỏ qua|quên).{0,25}(?:hướng dẫn|chỉ dẫn|quy tắc)",
    r"(?:تجاهل|انس).{0,25}(?:التعليمات|القواعد|الأوامر)",
    r"(?:התעלם|שכח).{0,25}(?:ההוראות|הוראות|הכללים)",
    r"(?:निर्देश|नियम).{0,20}(?:अनदेखा|नज़रअंदाज|भूल)",
)
_HIDE: Final = (
    r"\bohne\b.{0,10}\b(?:be)?nutzer\w*\b.{0,20}\b(?:fragen|informieren|warnen)",
    r"\b(?:sag|erzähl|verrate|erwähne|teile)\w*\b.{0,30}\b(?:be)?nutzer\w*\b.{0,20}\bnicht",
    r"\b(?:n'en parle|ne (?:le |lui )?(?:dis|dites|mentionne|révèle))\w*\b.{0,40}\butilisateur",
    r"\bsans\b.{0,6}\b(?:informer|prévenir|demander|le dire)\b.{0,20}\butilisateur",
    r"\b(?:no|sin)\b.{0,6}\b(?:dig|mencion|inform|avis|dec)\w*\b.{0,30}\busuario",
    r"\b(?:não|sem)\b.{0,4}\b(?:dig|cont|mencion|inform|avis)\w*\b.{0,30}\b(?:usuário|utilizador)",
    r"\b(?:non|senza) (?:dir|menzion|inform|avvis)\w*\b.{0,30}\butente",
    r"не (?:говори|сообщай|упоминай|рассказывай).{0,30}пользовател",
    r"(?:不要|别|勿|不得|不必).{0,6}(?:告诉|告知|提及|透露).{0,8}(?:用户|使用者|用戶)",
    r"ユーザー?.{0,6}(?:言わ|伝え|知らせ|教え).{0,4}(?:ない|ず)",
    r"사용자.{0,6}(?:알리|말하).{0,4}(?:지 ?마|않)",
    r"\b(?:be)?nutzer\w*\b.{0,15}\bnichts\b|\bnichts\b.{0,15}\b(?:be)?nutzer",
    r"\bsans\b.{0,6}\b(?:en parler|le mentionner|rien dire|prévenir|avertir)\b",
    r"\bni (?:lo )?menciones?\b|\bno se lo digas\b|\ben secreto\b",
    r"\bnie (?:mów|wspominaj|informuj|mówić)\w*\b.{0,20}\bużytkownik",
    r"kullan[i\u0131]c[i\u0131]ya.{0,20}(?:söyleme|bildirme|bahsetme)",
    r"\b(?:säg|berätta|nämn)\w*\b.{0,20}\b(?:inte|inget)\b.{0,20}\banvändar",
    r"\b(?:jangan|tanpa)\b.{0,12}\b(?:memberi ?tahu|beri ?tahu|bilang)",
    r"(?:đừng|không) (?:nói|báo).{0,15}người dùng",
    r"(?:لا تخبر|دون إخبار|بدون إخبار).{0,12}المستخدم",
    r"(?:אל תספר|בלי לספר|מבלי ליידע).{0,12}(?:ל)?משתמש",
    r"не (?:кажи|повідомляй).{0,20}користувач",
    r"(?:उपयोगकर्ता|यूज़र).{0,15}(?:मत बता|न बता)",
)
# The names of such files need no translation; what is done with them is a verb of the language.
_PRIVATE_FILE: Final = (
    r"(?:\.ssh/|\bid_(?:rsa|ed25519|ecdsa)\b(?!\.pub)|\.netrc|\.aws/credentials|/etc/shadow|\.gnupg|"
    r"\.password-store|\.npmrc|\.pypirc|\.git-credentials|(?<!\w)\.env\b(?!\.)|\.kube/config)"
)
_FOREIGN_CARRY: Final = (
    r"(?:übergib|sende|schick|kopier|füge|hänge|schreib|lies\b|transmet|envoie|envoy|copie|mets\b|lis\b|"
    r"envía|enviar|copia|pon\b|lee\b|envie|leia|coloque|invia|leggi|metti|stuur|lees\b|wyślij|przeczytaj|skopiuj|"
    r"gönder|oku\b|yaz\b|kopyala|отправ|прочита|скопируй|передай|надішли|прочитай|skicka|läs\b|kirim|baca\b|gửi|đọc|"
    r"发送|读取|复制|放入|上传|傳送|讀取|送信|読み取|読ん|コピー|보내|읽어|복사|أرسل|اقرأ|انسخ|שלח|קרא|भेज|पढ़)"
)
_TAKE_FILE: Final = (
    rf"{_FOREIGN_CARRY}.{{0,60}}{_PRIVATE_FILE}",
    rf"{_PRIVATE_FILE}.{{0,60}}{_FOREIGN_CARRY}",
)


def _any_of(patterns: tuple[str, ...], why: str) -> Phrase:
    # Plain, as the text is: of other scripts, letters that look like Latin ones are Latin in it.
    return Phrase(late_pattern("|".join(map(plain, patterns))), 3, why)


FOREIGN: Final = (
    _any_of(_DROP_RULES, "tells the model to drop the rules that it was given"),
    _any_of(_HIDE, "tells the model to hide from the user what it does"),
    _any_of(_TAKE_FILE, "tells the model to carry secrets of this machine into a call"),
)
