"""Where random bits come from: the only file that asks the operating system for them.

A release hands `Randomness` to a mechanism, which asks it for fresh `Bits` once per call. The bits are a ChaCha20
keystream under a key that the operating system has just drawn, or, as an option, the operating system's own generator.
There is no state between calls, so a fork, a thread or a pickle cannot repeat a stream.

Seeded bits are another type (`mechanisms.noise.seeded`): they imitate a release, and `Randomness` never yields them.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

KEY_BYTES = 32
BYTES_PER_KEY = 1 << 30
"""A key is replaced long before ChaCha20's 32-bit block counter comes round (2^38 bytes)."""

_WORDS = {width: np.dtype(f"<u{width // 8}") for width in (8, 16, 32, 64)}
_ZEROS = bytes(1 << 19)


class Bits(ABC):
    """An endless string of fair, independent bits, read once from the front."""

    @abstractmethod
    def read(self, size: int) -> bytes:
        """The next `size` bytes."""

    def words(self, count: int, width: int) -> NDArray[Any]:
        """The next `count` words of 8, 16, 32 or 64 bits, as unsigned integers that cannot be written to."""
        kind = _WORDS[width]
        return np.frombuffer(self.read(count * kind.itemsize), kind, count)

    def integer(self, width: int) -> int:
        """The next `width` bits as one integer."""
        size = -(-width // 8)
        return int.from_bytes(self.read(size), "little") >> (8 * size - width)


class CipherBits(Bits):
    """A ChaCha20 keystream; every key comes from `draw_key` and serves for at most a gibibyte."""

    def __init__(self, draw_key: Callable[[], bytes]) -> None:
        self._draw_key = draw_key
        self._rekey()

    def _rekey(self) -> None:
        cipher = Cipher(algorithms.ChaCha20(self._draw_key(), bytes(16)), mode=None)
        self._stream = cipher.encryptor()
        self._left = BYTES_PER_KEY
        self._process = os.getpid()

    def read(self, size: int) -> bytes:
        """The next bytes of the keystream; in a forked process, of a new one."""
        if size > len(_ZEROS):
            return b"".join(self.read(min(len(_ZEROS), size - start)) for start in range(0, size, len(_ZEROS)))
        if size > self._left or self._process != os.getpid():
            self._rekey()
        self._left -= size
        return self._stream.update(memoryview(_ZEROS)[:size])

    def __reduce__(self) -> NoReturn:
        raise TypeError("random bits are not copied: a stream that exists twice would be read twice")


class KernelBits(Bits):
    """The operating system's own generator, asked anew for every word."""

    def read(self, size: int) -> bytes:
        """The next bytes of the operating system's generator."""
        return os.urandom(size)


class Generator(StrEnum):
    """What turns entropy into many bits."""

    CHACHA20 = "chacha20"
    KERNEL = "kernel"


@final
@dataclass(frozen=True, slots=True)
class Randomness:
    """Release-grade randomness. Mechanisms accept this type and no other, so seeded bits cannot reach a release."""

    generator: Generator = Generator.CHACHA20

    def __post_init__(self) -> None:
        if type(self.generator) is not Generator:
            raise TypeError(f"a generator is a Generator, got {type(self.generator).__name__}")

    def bits(self) -> Bits:
        """A new stream under a new key."""
        if self.generator is Generator.KERNEL:
            return KernelBits()
        return CipherBits(lambda: os.urandom(KEY_BYTES))


def release_bits(randomness: Randomness) -> Bits:
    """Fresh bits for one measurement; anything but `Randomness` itself is refused."""
    if type(randomness) is not Randomness:
        raise TypeError(f"a measurement takes its noise from Randomness, not from {type(randomness).__name__}")
    return randomness.bits()
