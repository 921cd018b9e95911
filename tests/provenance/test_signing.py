"""Ed25519 keys: their files, their ids, their signatures, and OpenSSL's opinion of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from portbook.provenance.signing import BadKey, PublicKey, SigningKey

# RFC 8032, 7.1, test 1 and 3: seed, public key, message, signature.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
]

KEY = SigningKey(bytes(range(32)))
# The order of the group: a signature's second half may be spelled with it added, by those who do not look.
ORDER = 2**252 + 27742317777372353535851937790883648493


def with_the_order_added(half: str) -> str:
    return (int.from_bytes(bytes.fromhex(half), "little") + ORDER).to_bytes(32, "little").hex()


@pytest.mark.parametrize(("seed", "public", "message", "signature"), VECTORS)
def test_signatures_are_those_of_the_rfc(seed: str, public: str, message: str, signature: str) -> None:
    key = SigningKey(bytes.fromhex(seed))
    assert key.key_id == f"ed25519:{public}"
    assert key.sign(bytes.fromhex(message)) == signature
    assert PublicKey.from_id(key.key_id).verifies(bytes.fromhex(message), signature)


def test_a_signature_is_of_one_message_by_one_key() -> None:
    signature = KEY.sign(b"message")
    assert KEY.public.verifies(b"message", signature)
    assert not KEY.public.verifies(b"massage", signature)
    assert not SigningKey.generate().public.verifies(b"message", signature)


@pytest.mark.parametrize(
    "spoil",
    [
        str.upper,
        lambda text: text[:-2],
        lambda text: text + "00",
        lambda text: f" {text}",
        lambda text: "g" + text[1:],
        lambda text: "",
        lambda text: text[:64] + with_the_order_added(text[64:]),
    ],
    ids=["upper case", "short", "long", "a space", "no digit", "empty", "the order added"],
)
def test_a_signature_has_one_spelling(spoil: object) -> None:
    assert callable(spoil)
    spoiled = spoil(KEY.sign(b"message"))
    assert not KEY.public.verifies(b"message", spoiled)


def test_keys_are_read_again_from_their_files() -> None:
    assert SigningKey.from_pem(KEY.to_pem()).key_id == KEY.key_id
    assert PublicKey.from_pem(KEY.public.to_pem()) == KEY.public
    assert PublicKey.from_pem("\n" + KEY.public.to_pem().replace("\n", "\r\n")) == KEY.public


def test_a_key_does_not_show_itself() -> None:
    seed = bytes(range(32)).hex()
    assert seed not in repr(KEY)
    assert repr(KEY) == f"SigningKey({KEY.key_id})"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected one PEM block, BEGIN PRIVATE KEY"),
        ("ssh-ed25519 AAAA", "expected one PEM block"),
        (KEY.to_pem() * 2, "expected one PEM block"),
        (KEY.public.to_pem(), "expected BEGIN PRIVATE KEY, not BEGIN PUBLIC KEY"),
        (KEY.to_pem().replace("PRIVATE", "ENCRYPTED PRIVATE"), "not BEGIN ENCRYPTED PRIVATE KEY"),
        ("-----BEGIN PRIVATE KEY-----\nA===\n-----END PRIVATE KEY-----\n", "is not base64"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "not an Ed25519 key"),
    ],
)
def test_a_file_that_holds_no_such_key_is_refused_with_what_was_expected(text: str, said: str) -> None:
    with pytest.raises(BadKey, match=said) as raised:
        SigningKey.from_pem(text)
    assert len(str(raised.value)) < 120


@pytest.mark.parametrize(
    "key_id", ["", "ed25519:", "rsa:" + "0" * 64, "ed25519:" + "A" * 64, "ed25519:" + "0" * 63]
)
def test_an_id_that_is_none_is_refused(key_id: str) -> None:
    with pytest.raises(BadKey, match="64 lower-case hexadecimal digits"):
        PublicKey.from_id(key_id)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_openssl_reads_our_keys_and_agrees_with_our_signatures(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(KEY.to_pem())
    (tmp_path / "key.pub").write_text(KEY.public.to_pem())
    (tmp_path / "message").write_bytes(b"message")
    (tmp_path / "signature").write_bytes(bytes.fromhex(KEY.sign(b"message")))
    verify = "openssl pkeyutl -verify -pubin -inkey key.pub -rawin -in message -sigfile signature"
    done = subprocess.run(verify.split(), cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    public = subprocess.run(
        ["openssl", "pkey", "-in", "key.pem", "-pubout"], cwd=tmp_path, capture_output=True, text=True
    )
    assert public.stdout == KEY.public.to_pem()
