"""The command `margrave` in a process that kills itself at a named point: the office, the point, the words."""

from __future__ import annotations

import sys
from pathlib import Path

from flows.cli import main
from tests.flows.crashes.nursery import note_draws
from tests.flows.crashes.office import Office
from tests.flows.crashes.points import arm, die

NEVER = "never"

if __name__ == "__main__":
    folder, point, *words = sys.argv[1:]
    note_draws(Office(Path(folder)))
    if point != NEVER:
        arm(point, 1, die)
    sys.exit(main(words))
