"""TLS: a certificate and its key, read from files, and read again when they have changed."""

from __future__ import annotations

import ssl
from pathlib import Path

__all__ = ["BadCertificate", "ServerCertificate"]


class BadCertificate(ValueError):
    """Files that are not a certificate and its key; the message names the files, and quotes nothing."""


class ServerCertificate:
    """The certificate that clients are shown."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read both files, in PEM form; the first may hold further certificates of the chain.

        Raises `BadCertificate` where they cannot be used.
        """
        self._certificate = certificate
        self._key = key
        self.context = self._read()

    def reload(self) -> None:
        """Read the files again, for connections that begin from now on.

        Raises `BadCertificate` where they cannot be used; then the certificate stays as it is.
        """
        self._read()
        self._load(self.context)

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            # Asked for a password, OpenSSL would wait at the terminal.
            context.load_cert_chain(self._certificate, self._key, password=_no_password)
        except _EncryptedKey:
            raise BadCertificate(f"{self._key}: the key is encrypted; decrypt it first") from None
        except ssl.SSLError:
            raise BadCertificate(
                f"{self._certificate} and {self._key}: not a certificate and its key in PEM form"
            ) from None
        except OSError as error:
            raise BadCertificate(f"{error.filename or self._certificate}: {error.strerror}") from None


class _EncryptedKey(Exception):
    pass


def _no_password() -> str:
    raise _EncryptedKey
