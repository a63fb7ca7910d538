"""Bits: fresh for every call, never repeated by a fork, a thread or a copy, and never seeded on the release path."""

import copy
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from scipy import stats

from mechanisms import randomness
from mechanisms.noise.seeded import SeededBits
from mechanisms.randomness import CipherBits, Generator, KernelBits, Randomness, release_bits

BOTH = [Randomness(), Randomness(Generator.KERNEL)]


@pytest.mark.parametrize("source", BOTH)
def test_every_call_reads_other_bits(source: Randomness) -> None:
    heads = {source.bits().read(32) for _ in range(200)}
    assert len(heads) == 200


def test_a_key_is_256_bits_of_the_operating_system_and_is_drawn_for_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def urandom(size: int) -> bytes:
        asked.append(size)
        return bytes([len(asked)] * size)

    monkeypatch.setattr(randomness.os, "urandom", urandom)
    first, second = Randomness().bits(), Randomness().bits()
    assert asked == [32, 32]
    expected = Cipher(algorithms.ChaCha20(bytes([1] * 32), bytes(16)), None).encryptor().update(bytes(100))
    assert first.read(60) + first.read(40) == expected
    assert second.read(100) != expected


def test_a_key_serves_for_a_bounded_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomness, "BYTES_PER_KEY", 1000)
    keys: list[bytes] = []

    def draw_key() -> bytes:
        keys.append(os.urandom(32))
        return keys[-1]

    bits = CipherBits(draw_key)
    read = [bits.read(400) for _ in range(10)]
    assert len(keys) == 5
    assert len(set(read)) == 10


def test_long_reads_go_on_where_short_ones_would(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 3 * (1 << 19) + 17
    whole, parts = SeededBits("long"), SeededBits("long")
    assert whole.read(size) == b"".join(parts.read(min(65536, size - start)) for start in range(0, size, 65536))


def _child(bits: CipherBits, answers: "multiprocessing.Queue[bytes]") -> None:
    answers.put(bits.read(32))


def test_a_forked_process_reads_another_stream() -> None:
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[bytes] = context.Queue()
    bits = Randomness().bits()
    bits.read(10)
    children = [context.Process(target=_child, args=(bits, answers)) for _ in range(3)]
    for child in children:
        child.start()
    heard = {answers.get(timeout=60) for _ in children}
    for child in children:
        child.join(60)
    heard.add(bits.read(32))
    assert len(heard) == 4


def test_threads_that_measure_at_once_read_different_bits() -> None:
    heard: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: heard.extend(Randomness().bits().read(32) for _ in range(50))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(heard)) == 400


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_bits_cannot_be_copied(duplicate: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="not copied"):
        duplicate(Randomness().bits())


def test_the_kernel_generator_is_an_option() -> None:
    assert isinstance(Randomness(Generator.KERNEL).bits(), KernelBits)


@pytest.mark.parametrize("source", BOTH)
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_words_are_uniform_in_every_byte(source: Randomness, width: int) -> None:
    words = source.bits().words(40_000, width)
    assert words.dtype.itemsize == width // 8
    for shift in range(0, width, 8):
        counts = np.bincount(((words >> np.array(shift, words.dtype)) & np.array(255, words.dtype)).astype(int))
        assert stats.chisquare(counts).pvalue > 1e-7


@pytest.mark.parametrize("width", [1, 3, 8, 13, 64, 200])
def test_integers_have_just_the_bits_asked_for(width: int) -> None:
    values = [Randomness().bits().integer(width) for _ in range(300)]
    assert min(values) >= 0
    assert max(values) < 2**width
    assert max(values) >= 2 ** (width - 1)


def test_the_same_seed_gives_the_same_bits_everywhere_and_another_seed_others() -> None:
    assert SeededBits("certificate").read(8).hex() == "78eb87fad7c35034"
    assert SeededBits(1).read(32) != SeededBits(2).read(32)
    assert SeededBits(1).read(32) != SeededBits("1").read(32)


class Disguised:
    """Something that looks like Randomness."""

    def bits(self) -> SeededBits:
        return SeededBits(0)


class Derived(Randomness):  # type: ignore[misc]
    """A subclass, which a type checker would refuse too."""

    def bits(self) -> SeededBits:
        return SeededBits(0)


@pytest.mark.parametrize("impostor", [SeededBits(0), Disguised(), Derived(), None, 7, np.random.default_rng(0)])
def test_only_randomness_itself_is_accepted_for_a_measurement(impostor: object) -> None:
    with pytest.raises(TypeError, match="takes its noise from Randomness"):
        release_bits(impostor)  # type: ignore[arg-type]
