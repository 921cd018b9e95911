"""Orders to a model in languages other than English, with their weights. Pure: no I/O.

Two orders that no honest definition gives in any language: to drop the rules, and to hide something from the
user. Patterns are for one plain sentence, as in `directive_phrases.py`.
"""

from __future__ import annotations

from typing import Final

from portbook.scan.directive_phrases import Phrase
from portbook.scan.plain_text import plain
from portbook.text.late_pattern import late_pattern

__all__ = ["FOREIGN"]

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
)


def _any_of(patterns: tuple[str, ...], why: str) -> Phrase:
    # Plain, as the text is: of other scripts, letters that look like Latin ones are Latin in it.
    return Phrase(late_pattern("|".join(map(plain, patterns))), 3, why)


FOREIGN: Final = (
    _any_of(_DROP_RULES, "tells the model to drop the rules that it was given"),
    _any_of(_HIDE, "tells the model to hide from the user what it does"),
)
