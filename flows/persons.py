"""Who starts a run or decides on one: in an office of several persons, one of those whose keys the ledger knows.

The starter of a run may not approve it. That means something only if the starter has the name of somebody who could
approve; a login name that nobody enrolled under excludes nobody.
"""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING

from flows.terminal import UserError

if TYPE_CHECKING:
    from flows.ledger.books import Books

PERSON_VARIABLE = "MARGRAVE_PERSON"


def person_in(books: Books, named: str | None) -> str:
    """Who acts, by the ledger's name: as named, by the environment, or by login. Raises `UserError` for a stranger.

    Alone, every name will do: nobody approves anything.
    """
    from flows.ledger.books import same_person

    found = str(named or os.environ.get(PERSON_VARIABLE) or getpass.getuser())
    known = {same_person(key.person): key.person for key in books.keys.values() if not key.revoked}
    if books.solo or same_person(found) in known:
        return known.get(same_person(found), found)
    source = "your login name" if not (named or os.environ.get(PERSON_VARIABLE)) else "as you say"
    raise UserError(
        f"'{found}' ({source}) is nobody whose key this ledger knows, and it has to know who starts a run, because "
        f"that person may not approve it. Say who you are with --as NAME, or in {PERSON_VARIABLE}: one of "
        f"{', '.join(known.values())}. Nothing was reserved or charged"
    )
