"""Signing keys (Ed25519): of named persons with roles, and of the office.

A person's private key is a file of its own that only the person reads; the ledger knows the public key. What is signed
names the ledger, the act and its subject, so that a signature is good for one thing in one ledger.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from flows.ledger.chain import canonical
from flows.ledger.errors import Refused

ROLES = ("custodian", "reviewer", "director")
PUBLIC_BYTES = 32


@dataclass(frozen=True, slots=True)
class Signed:
    """What an approval signs."""

    ledger: str
    act: str
    subject: str
    expires: str

    @property
    def message(self) -> bytes:
        """The bytes that are signed."""
        return canonical(
            {"margrave": "approval", "ledger": self.ledger, "act": self.act}
            | {"subject": self.subject, "expires": self.expires}
        ).encode()


def new_key() -> Ed25519PrivateKey:
    """A new private key from the operating system's randomness."""
    return Ed25519PrivateKey.generate()


def public_of(key: Ed25519PrivateKey) -> str:
    """The public key, as the ledger writes it."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def sign(key: Ed25519PrivateKey, message: bytes) -> str:
    """The signature of a message, as the ledger writes it."""
    return key.sign(message).hex()


def holds(public: str, signature: str, message: bytes) -> bool:
    """Whether a signature was made with a key for this message."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def is_public_key(text: str) -> bool:
    """Whether a text is a public key as the ledger writes it."""
    return len(text) == 2 * PUBLIC_BYTES and all(letter in "0123456789abcdef" for letter in text)


def private_bytes(key: Ed25519PrivateKey, passphrase: str | None = None) -> bytes:
    """The private key as a PEM text, encrypted where a passphrase is given."""
    how = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how)


def write_key(path: Path, key: Ed25519PrivateKey, passphrase: str | None = None) -> None:
    """Writes a private key where nothing is yet, for its owner's eyes only."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(private_bytes(key, passphrase))
        file.flush()
        os.fsync(file.fileno())


def read_key(path: Path, passphrase: str | None = None) -> Ed25519PrivateKey:
    """The private key in a file."""
    try:
        return key_from(path.read_bytes(), passphrase)
    except OSError as fault:
        raise Refused(f"the key file {path} cannot be read: {fault.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise Refused(
            f"{path} holds no Ed25519 private key that opens with this passphrase; make one with: margrave ledger key"
        ) from None


def key_from(data: bytes, passphrase: str | None = None) -> Ed25519PrivateKey:
    """The private key in a PEM text."""
    key = load_pem_private_key(data, passphrase.encode() if passphrase else None)
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError("another kind of key")
    return key
