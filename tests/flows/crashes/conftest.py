"""One process that gives birth to those that are killed, and a fresh office for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.pipeline import release_once
from tests.flows.crashes.inquest import Inquest
from tests.flows.crashes.nursery import Nursery
from tests.flows.crashes.office import Office, copied, found, furnish


@pytest.fixture(scope="session")
def bare_office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """An office without a ledger, to be copied."""
    office = furnish(tmp_path_factory.mktemp("crashes") / "bare")
    (office.folder / "tmp").mkdir()
    return office


@pytest.fixture(scope="session")
def nursery(bare_office: Office) -> Iterator[Nursery]:
    """The process that gives birth to others, warmed by a release that nobody interrupts."""
    template = found(copied(bare_office, bare_office.folder.with_name("template")))
    release_once(template.spec, template.place, data=template.data, out=template.out)
    with Nursery(template) as nursery:
        yield nursery


@pytest.fixture
def office(bare_office: Office, tmp_path: Path) -> Office:
    """A fresh office of one person."""
    return found(copied(bare_office, tmp_path / "office"))


@pytest.fixture
def inquest(office: Office, tmp_path: Path) -> Inquest:
    """Who looks at the office after each kill."""
    return Inquest(office, tmp_path)
