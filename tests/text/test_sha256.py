"""SHA-256: the same digests from either library, and OpenSSL only where there is much to hash."""

from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from portbook.text.sha256 import hmac_sha256, is_same_digest, openssl_sha256, own_sha256, sha256


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_every_library_has_the_digests_of_hashlib(data: bytes, more: bytes) -> None:
    for make in (own_sha256, openssl_sha256(), sha256):
        made = make(data)
        made.update(more)
        assert made.digest() == hashlib.sha256(data + more).digest()
        assert made.hexdigest() == hashlib.sha256(data + more).hexdigest()
    assert hmac_sha256(data, more).digest() == hmac.digest(data, more, "sha256")


def test_digests_are_compared_whole() -> None:
    assert is_same_digest("ab", "ab")
    assert is_same_digest(b"ab", b"ab")
    assert not is_same_digest("ab", "ac")
    assert not is_same_digest("ab", "abc")


def test_openssl_is_loaded_where_there_is_much_to_hash() -> None:
    code = """
import sys
from portbook.text.sha256 import sha256
def is_loaded(): return "_hashlib" in sys.modules
assert not is_loaded()
for _ in range(1000):
    few = sha256(b"x" * 1000).hexdigest()
assert not is_loaded()
for _ in range(100):
    assert sha256(b"x" * 1000).hexdigest() == few
assert is_loaded()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_large_text_is_hashed_by_openssl() -> None:
    code = """
import sys
from portbook.text.sha256 import sha256
sha256(bytes(2 << 20))
assert "_hashlib" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_python_without_hashes_of_its_own_uses_openssl_from_the_beginning() -> None:
    code = """
import sys
sys.modules["_sha2"] = sys.modules["_sha256"] = None
from portbook.text.sha256 import own_sha256
import hashlib
assert own_sha256 is hashlib.sha256
"""
    subprocess.run([sys.executable, "-c", code], check=True)
