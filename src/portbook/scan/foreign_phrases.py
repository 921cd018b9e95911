"""Orders to a model in languages other than English, with their weights. Pure: no I/O.

Three orders that no honest definition gives in any language: to drop the rules, to hide something from the
user, and to carry a file of secrets into a call; such files have the same names in every language. Patterns
are for one plain sentence, as in `directive_phrases.py`.
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
_CARRY: Final = (
    r"(?:übergib|sende|schick|kopier|füge|hänge|schreib|lies\b|transmet|envoie|envoy|copie|mets\b|lis\b|"
    r"envía|enviar|copia|pon\b|lee\b|envie|leia|coloque|invia|leggi|metti|stuur|lees\b|wyślij|przeczytaj|skopiuj|"
    r"gönder|oku\b|yaz\b|kopyala|отправ|прочита|скопируй|передай|надішли|прочитай|skicka|läs\b|kirim|baca\b|gửi|đọc|"
    r"发送|读取|复制|放入|上传|傳送|讀取|送信|読み取|読ん|コピー|보내|읽어|복사|أرسل|اقرأ|انسخ|שלח|קרא|भेज|पढ़)"
)
_TAKE_FILE: Final = (
    rf"{_CARRY}.{{0,60}}{_PRIVATE_FILE}",
    rf"{_PRIVATE_FILE}.{{0,60}}{_CARRY}",
)


def _any_of(patterns: tuple[str, ...], why: str) -> Phrase:
    # Plain, as the text is: of other scripts, letters that look like Latin ones are Latin in it.
    return Phrase(late_pattern("|".join(map(plain, patterns))), 3, why)


FOREIGN: Final = (
    _any_of(_DROP_RULES, "tells the model to drop the rules that it was given"),
    _any_of(_HIDE, "tells the model to hide from the user what it does"),
    _any_of(_TAKE_FILE, "tells the model to carry secrets of this machine into a call"),
)
