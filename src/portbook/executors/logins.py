"""`LoginValue`: the credential for one security scheme, in the form that its scheme sends."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

from portbook.apis.gateway import Login, Secret
from portbook.executors.secrets import REMEMBERED, NoCredential, SecretValue
from portbook.tools.credential_use import CredentialForm

__all__ = ["LoginValue"]


class LoginValue:
    """A login whose secrets are read when they are needed."""

    def __init__(
        self, place: str, login: Login, environ: Mapping[str, str], notice: Callable[[str], None]
    ) -> None:
        """Use `place`, the setting that names it, in messages; `notice` is called with every new secret."""
        self._place = place
        self._notice = notice
        self._secret = None if login.secret is None else SecretValue(place, login.secret, environ, notice)
        self._username = login.username
        self._named = (
            SecretValue(f"{place}.username", login.username, environ, notice)
            if isinstance(login.username, Secret)
            else None
        )
        self.sources = [source for source in (self._named, self._secret) if source is not None]
        """The secrets that it is made of."""
        self._encoded: list[str] = []

    def read(self, form: CredentialForm) -> str:
        """Return the current value in this form.

        Raises `NoCredential` where it is not available, or does not fit the form.
        """
        if form == "basic":
            return f"Basic {self._encode(self._pair())}"
        assert self._secret is not None
        value = self._secret.read()
        return f"Bearer {value}" if form == "bearer" else value

    def known(self) -> list[str]:
        """Return every secret value known so far, for redaction."""
        return [value for source in self.sources for value in source.known()] + self._encoded

    def _pair(self) -> str:
        secret = "" if self._secret is None else self._secret.read()
        if self._username is None:
            if ":" not in secret:
                raise NoCredential(f"{self._place}: must be username:password; or set username and password")
            return secret
        username = self._username if self._named is None else self._named.read()
        assert isinstance(username, str)
        if ":" in username:
            raise NoCredential(f"{self._place}.username: must have no colon in it")
        return f"{username}:{secret}"

    def _encode(self, pair: str) -> str:
        encoded = base64.b64encode(pair.encode()).decode("ascii")
        if encoded not in self._encoded:
            self._encoded = [*self._encoded, encoded][-REMEMBERED:]
            self._notice(encoded)
        return encoded
