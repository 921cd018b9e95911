"""Reads where a secret comes from: a variable or a file that the settings name. Pure: no I/O."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from portbook.apis.gateway import Login, Secret
from portbook.apis.table_reader import Table

__all__ = ["read_login", "read_secret"]

_WANTED: Final = 'must be { env = "NAME" } or { file = "path" }: do not write secrets into this file'
_WANTED_LOGIN: Final = (
    'must be { env = "NAME" }, { file = "path" } or { username = "…", password = { env = "NAME" } }'
)


def read_secret(table: Table, key: str, folder: Path) -> Secret | None:
    """Return the secret at `key`, or None where the key is missing; a path is relative to `folder`.

    Raises the table's exception where it is not one.
    """
    if key not in table:
        return None
    if not isinstance(table.value(key), dict):
        raise table.wrong(key, _WANTED)
    source = table.table(key)
    source.only(("env", "file"))
    env, file = source.text("env"), source.text("file")
    if (env is None) == (file is None):
        raise table.wrong(key, _WANTED)
    return Secret(env, None if file is None else folder / file)


def read_login(table: Table, key: str, folder: Path) -> Login:
    """Return the credential at `key`: a secret, or a user's name with or without a password.

    Raises the table's exception where it is neither.
    """
    if not isinstance(table.value(key), dict):
        raise table.wrong(key, _WANTED_LOGIN)
    source = table.table(key)
    if "username" not in source:
        source.only(("env", "file", "username", "password"))
        if "password" in source:
            raise table.wrong(key, "has a password without a username; add username")
        secret = read_secret(table, key, folder)
        assert secret is not None
        return Login(secret)
    source.only(("username", "password"))
    is_named = isinstance(source.value("username"), dict)
    username = read_secret(source, "username", folder) if is_named else source.text("username")
    if isinstance(username, str) and (":" in username or not username.isprintable()):
        raise source.wrong("username", "must be printable, without a colon")  # RFC 7617 2
    return Login(read_secret(source, "password", folder), username)
