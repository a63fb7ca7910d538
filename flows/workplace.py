"""Where a release is made: the ledger, and the private folder beside it.

The private folder holds what only the office may see: where the confidential files of a run are, its stored
measurements, and its tables until they are published. Only its owner may enter it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flows.datasets import absolute, place_in
from flows.ledger.errors import HERE
from flows.ledger.store import POSTGRES, SQLITE
from flows.terminal import UserError

if TYPE_CHECKING:
    from flows.ledger.ledger import Ledger

LEDGER, PRIVATE = "margrave.ledger", ".private"
LEDGER_VARIABLE, PRIVATE_VARIABLE = "MARGRAVE_LEDGER", "MARGRAVE_PRIVATE"
DATASET, CANDIDATE = "dataset.json", "candidate"


@dataclass(frozen=True, slots=True)
class Workplace:
    """The address of a ledger, and the private folder."""

    ledger: str
    private: Path

    @classmethod
    def chosen(cls, *, ledger: str | None, beside: Path, private: Path | None = None) -> Workplace:
        """As named; else by environment; else one SQLite file beside the spec, and a folder beside that file."""
        url = ledger or os.environ.get(LEDGER_VARIABLE) or str(beside / LEDGER)
        folder = private or (Path(found) if (found := os.environ.get(PRIVATE_VARIABLE)) else None)
        if folder is None:
            folder = beside / f"margrave{PRIVATE}" if url.startswith(POSTGRES) else _beside(url)
        return cls(url, folder)

    @property
    def address(self) -> str:
        """The ledger's address, which means the same from every folder."""
        return absolute(self.ledger.removeprefix(SQLITE))

    @property
    def option(self) -> str:
        """What a command typed here must say to find this ledger; nothing where it finds it by itself."""
        is_known = self.ledger == os.environ.get(LEDGER_VARIABLE)
        if self.ledger.startswith(POSTGRES):  # the address may hold a password
            return ("" if is_known else " --ledger URL") + self._whereabouts
        is_known = is_known or Path(self.ledger.removeprefix(SQLITE)).resolve() == Path(LEDGER).resolve()
        return "" if is_known else f" --ledger {shlex.quote(self.ledger)}"

    @property
    def _whereabouts(self) -> str:
        """Where the private folder of a PostgreSQL ledger is, if a command typed here would look elsewhere."""
        if self.private.resolve() == self.chosen(ledger=self.ledger, beside=Path()).private.resolve():
            return ""
        return f" (with {PRIVATE_VARIABLE}={shlex.quote(str(self.private.resolve()))} in the environment)"

    def hinted(self, text: str) -> str:
        """A sentence whose commands find this ledger when they are typed here."""
        return text.replace(HERE, self.option)

    def hinted_everywhere(self, text: str) -> str:
        """A sentence whose commands find this ledger wherever they are typed."""
        if self.ledger.startswith(POSTGRES):
            return text.replace(HERE, " --ledger URL")
        return text.replace(HERE, f" --ledger {shlex.quote(str(Path(self.ledger.removeprefix(SQLITE)).resolve()))}")

    def open_ledger(self) -> Ledger:
        """The ledger."""
        from flows.ledger.ledger import Ledger

        return Ledger.open(self.ledger)

    def run_named(self, digits: str) -> str:
        """The run that is called by its name or the first digits of it."""
        runs = self.open_ledger().books().runs
        found = [run for run in runs if digits and run.startswith(digits)] if digits not in runs else [digits]
        if len(found) == 1:
            return found[0]
        several = f"{len(found)} runs begin with '{digits}' ({', '.join(found)}); write more of it, see"
        none = f"there is no run '{digits}' in the ledger {self.shown}; see which there are with"
        raise UserError(f"{several if found else none}: margrave ledger show{HERE}")

    @property
    def shown(self) -> str:
        """The ledger's address without a password."""
        from flows.ledger.store import open_store

        return open_store(self.ledger).place

    def run_folder(self, run: str) -> Path:
        """The private folder of a run, made where it is not there."""
        folder = self.private / "runs" / run
        for one in (self.private, self.private / "runs", folder):
            try:
                one.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as fault:
                raise UserError(f"the private folder {one} cannot be made: {fault.strerror}") from None
            _require_private(one)
        return folder

    def note_dataset(self, run: str, places: Mapping[str, str]) -> None:
        """Keeps where the confidential files of a run are, for the confidential step alone."""
        self._note(run, {entity: absolute(place) for entity, place in places.items()})

    def note_references(self, run: str, names: Mapping[str, str], *, edition: str | None) -> None:
        """Keeps which datasets a run is made from; where their files are is looked up in the confidential step."""
        self._note(run, {entity: {"dataset": name, "edition": edition} for entity, name in names.items()})

    def _note(self, run: str, noted: Mapping[str, object]) -> None:
        write_whole(self.run_folder(run) / DATASET, json.dumps(dict(noted)))

    def dataset(self, run: str) -> dict[str, str]:
        """Where the confidential files of a run are."""
        path = self.run_folder(run) / DATASET
        if not path.exists():
            raise UserError(f"run {run} does not know its microdata any more; name them again with --data NAME=PATH")
        noted = json.loads(path.read_text(encoding="utf-8"))
        return {str(entity): self._place(str(entity), kept) for entity, kept in noted.items()}

    def _place(self, entity: str, kept: str | Mapping[str, str]) -> str:
        if isinstance(kept, str):
            return kept
        return place_in(self.private, kept["dataset"], entity, edition=kept["edition"])

    def knows_dataset(self, run: str) -> bool:
        """Whether it is noted where the confidential files of a run are."""
        return (self.run_folder(run) / DATASET).exists()

    def forget_dataset(self, run: str) -> None:
        """Removes the note of where the confidential files are."""
        for left in (DATASET, f".{DATASET}"):
            (self.run_folder(run) / left).unlink(missing_ok=True)

    @contextmanager
    def alone(self, run: str) -> Iterator[None]:
        """While it lasts no other process works on a run. Raises `UserError` where one does."""
        opened = os.open(self.run_folder(run), os.O_RDONLY | os.O_DIRECTORY)
        try:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"another process is at work on run {run}; let it end, then call again") from None
            yield
        finally:
            os.close(opened)


def write_whole(path: Path, text: str) -> None:
    """Writes a file for its owner alone, so that all of it or what was there before is found, whatever happens."""
    aside = path.with_name(f".{path.name}")
    opened = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def _beside(url: str) -> Path:
    path = Path(url.removeprefix(SQLITE))
    return path.with_name(path.name + PRIVATE)


def _require_private(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UserError(f"{folder} must belong to you and be closed to others; mend it with: chmod 700 {folder}")
