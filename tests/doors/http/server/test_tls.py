"""Certificates: what is read, and what is said about files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.doors.http.server.tls import BadCertificate, ServerCertificate
from support.certificates import make_certificate, openssl


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a certificate, its key, and the same key encrypted."""
    make_certificate(tmp_path)
    key, locked = str(tmp_path / "key.pem"), str(tmp_path / "locked.pem")
    openssl("ec", "-aes128", "-passout", "pass:secret", "-in", key, "-out", locked)
    return tmp_path


def test_a_certificate_is_read_again_and_kept_if_it_cannot_be(folder: Path) -> None:
    certificate = ServerCertificate(folder / "cert.pem", folder / "key.pem")
    context = certificate.context
    certificate.reload()
    (folder / "cert.pem").write_text("none")
    with pytest.raises(BadCertificate, match="not a certificate and its key in PEM form"):
        certificate.reload()
    assert certificate.context is context


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        ("cert.pem", "not a certificate and its key"),
        ("none.pem", "No such file or directory"),
        ("locked.pem", "the key is encrypted; decrypt it first"),
    ],
)
def test_files_that_cannot_be_used_are_named_with_the_reason(folder: Path, key: str, complaint: str) -> None:
    with pytest.raises(BadCertificate, match=complaint):
        ServerCertificate(folder / "cert.pem", folder / key)
