"""Certificates for HTTPS servers of the tests."""

from __future__ import annotations

import shutil
import ssl
import subprocess

import pytest

from support.scripted_api import Certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate for api.example.com and 127.0.0.1."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("certificates are made with openssl")
    folder = tmp_path_factory.mktemp("certificates")
    names = "subjectAltName=DNS:api.example.com,DNS:localhost,IP:127.0.0.1"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=a test", "-addext", names),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")),
        ],
        check=True,
        capture_output=True,
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return Certificates(folder / "certificate.pem", server)
