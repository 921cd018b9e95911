"""Names of members that hold secrets, compared without case, `-`, `_` and spaces. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from portbook.text.late_pattern import late_pattern

__all__ = ["NAMES", "SecretNames", "folded"]

# Words are separated by a hyphen. A name that ends in one of these also counts, such as `smtp_password` or
# `x-api-key`. Only `token` has to be the whole name: names that end in it are often cursors of a list.
NAMES: Final = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "access-token",
    "api-token",
    "auth-token",
    "bearer-token",
    "id-token",
    "refresh-token",
    "security-token",
    "session-token",
    "api-key",
    "access-key",
    "account-key",
    "encryption-key",
    "operator-key",
    "private-key",
    "secret-key",
    "signing-key",
    "subscription-key",
    "authorization",
    "connection-string",
    "cookie",
    "credentials",
)

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_FOLD: Final = str.maketrans(_LETTERS.upper(), _LETTERS, "-_ ")


def folded(name: str) -> str:
    """Return `name` in the form that is compared. Letters beyond ASCII stay, as in the prefilter."""
    return name.translate(_FOLD)


_BUILT_IN: Final = frozenset(map(folded, NAMES))
_ENDINGS: Final = tuple(sorted(_BUILT_IN - {"token"}))

_NOT_IN_NAME: Final = late_pattern(r"[^\w-]")


class SecretNames:
    """The built-in names and those that the operator adds."""

    __slots__ = ("_whole", "added", "all", "beyond_ascii")

    def __init__(self, added: Iterable[str]) -> None:
        names = tuple(added)
        self.added = frozenset(map(folded, names))
        self.beyond_ascii = frozenset(folded(name.casefold()) for name in names if not name.isascii())
        """Added names with letters beyond ASCII, which are also compared without case."""
        self.all = _BUILT_IN | self.added
        self._whole = ("token", *sorted(self.added))

    def holds_secret(self, name: str, value: object) -> bool:
        """Return whether the member `name` holds a secret; for built-in names, null and booleans do not."""
        plain = folded(name)
        if plain in self.added:
            return True
        if self.beyond_ascii and not name.isascii() and folded(name.casefold()) in self.beyond_ascii:
            return True
        is_answer = value is None or value is True or value is False
        return not is_answer and (plain in _BUILT_IN or plain.endswith(_ENDINGS))

    def end(self, text: str) -> bool:
        """Return whether `text` ends with one of the names."""
        plain = folded(text)
        if plain.endswith(_ENDINGS):
            return True
        return plain.endswith(self._whole) and folded(_NOT_IN_NAME.split(text)[-1]) in self._whole
