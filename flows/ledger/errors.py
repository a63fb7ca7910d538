"""What a ledger refuses, and what is wrong with one that was altered.

LedgerError
|- NoLedger      there is none where one was named
|- Newer         a later version of Margrave wrote it
|- Refused       a rule does not allow it; nothing was written
|  |- Held       it waits for approvals
|  `- Embargoed  it waits for its hour
`- Broken        the chain does not hold together: it was altered or lost a part
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

REASONS = ("error-in-spec", "error-in-microdata", "error-in-software", "unfit-for-use", "withdrawn")
"""Why a custodian may reject a release (law 1): a closed list, counted on the account's next certificate."""

HERE = " [--ledger URL]"
"""Ends every command that a sentence names. Who knows the ledger puts there what the command must say to find it."""
FOUND_ONE = (
    f"found one with: margrave ledger init --solo{HERE} (one person) "
    f"or margrave ledger init --founder FILE --founder FILE{HERE} (several)"
)


class LedgerError(Exception):
    """Something about a ledger, said in sentences that end with what to do. They are free of data."""

    def bare(self) -> LedgerError:
        """The same error anew, with nothing attached."""
        return type(self)(*self.args)


class NoLedger(LedgerError):  # noqa: N818 - a refusal, named as the sentence it begins
    """There is no ledger at this place."""


class Newer(LedgerError):  # noqa: N818 - likewise
    """Something in it is of a later version, which alone can read it."""


class Refused(LedgerError):  # noqa: N818 - likewise
    """A rule of the ledger does not allow an entry. Nothing was written."""


class Held(Refused):
    """An act waits for approvals."""

    def __init__(self, pending: Pending) -> None:
        super().__init__(pending)
        self.pending = pending

    def __str__(self) -> str:
        return str(self.pending)


class Embargoed(Refused):
    """A release waits for the hour that its spec promises."""

    def __init__(self, run: str, until: datetime) -> None:
        super().__init__(run, until)
        self.run, self.until = run, until

    def __str__(self) -> str:
        return (
            f"run {self.run} is under embargo until {self.until:%Y-%m-%d %H:%M} UTC, the hour of its spec's schedule. "
            f"Then publish it with: margrave publish {self.run}{HERE}; if the schedule is wrong, correct the spec and "
            f"take it with: margrave reissue {self.run} --spec SPEC --reason TEXT{HERE}"
        )


class Broken(LedgerError):  # noqa: N818 - likewise
    """The chain of entries does not hold together."""


@dataclass(frozen=True, slots=True)
class Pending:
    """What an act still needs before it is entered."""

    act: str
    subject: str
    needed: int
    given: tuple[str, ...]
    """Who approved so far."""
    excluded: tuple[str, ...] = ()
    """Who does not count: the author and the starter of a run."""
    would: Mapping[str, Any] = field(default_factory=dict)
    """What is approved, in full: the subject is its digest."""
    lapsed: tuple[str, ...] = ()
    """Who approved, and does not count any more: the approval expired, or the key was revoked."""

    @property
    def is_met(self) -> bool:
        """Whether enough persons approved."""
        return len(self.given) >= self.needed

    def __str__(self) -> str:
        given = f"given so far by {', '.join(self.given)}" if self.given else "none is given yet"
        others = f"; {' and '.join(self.excluded)} may not approve it" if self.excluded else ""
        others += f"; expired or revoked: {', '.join(self.lapsed)}" if self.lapsed else ""
        return (
            f"{self.act} needs {self.needed} approval{'s' if self.needed != 1 else ''}, {given}{others}. "
            f"Approve it with: margrave ledger approve {self.subject[:16]} --key KEY{HERE}"
        )
