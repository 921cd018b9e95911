"""Certificates for HTTPS servers of the tests."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from support.scripted_api import Certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate for api.example.com and 127.0.0.1."""
    folder = tmp_path_factory.mktemp("certificates")
    make_certificate(folder)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return Certificates(folder / "cert.pem", server)


def make_certificate(folder: Path, subject: str = "a test") -> None:
    """Write cert.pem and key.pem for api.example.com, localhost and 127.0.0.1."""
    names = "subjectAltName=DNS:api.example.com,DNS:localhost,IP:127.0.0.1"
    openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-days", "2", "-subj", f"/CN={subject}", "-addext", names),
        *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
    )


def openssl(*arguments: str) -> None:
    """Run openssl; where there is none, the test is skipped."""
    found = shutil.which("openssl")
    if found is None:
        pytest.skip("certificates are made with openssl")
    subprocess.run([found, *arguments], check=True, capture_output=True)
