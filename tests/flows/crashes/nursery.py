"""A process that imports everything once and then gives birth to one process for each release, to be killed.

It reads one request a line (JSON) and answers each with how the process ended and what it said. Only modules, compiled
kernels and one pure number are shared; files, connections and threads begin in the born process.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.flows.crashes.disk_faults import FAULTS, without_unnamed_files
from tests.flows.crashes.office import Office
from tests.flows.crashes.points import arm, die, wrap
from tests.flows.without_prefect import no_server, take_steps

ROOT = Path(__file__).parents[3]
PATIENCE = 120.0
SAID, HELD, REFUSED = 0, 3, 1


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, or minus the signal; what it said; how often it touched a file."""

    code: int
    said: str

    @property
    def killed(self) -> bool:
        """Whether it was killed."""
        return self.code == -signal.SIGKILL


class Nursery:
    """The process, from outside."""

    def __init__(self, template: Office) -> None:
        command = [sys.executable, "-m", "tests.flows.crashes.nursery", str(template.folder)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._asked = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._asked as asked:
            assert asked.stdin is not None
            asked.stdin.close()
            asked.wait(PATIENCE)

    def release(self, office: Office, **wish: Any) -> Ended:
        """One call of the command: `point` and `nth` say where it kills itself, `delay` when it is killed.

        `fault` names what the disk refuses; with `cli` the call goes through the command line; with `named` the file
        system has no unnamed files.
        """
        asked = self._asked
        assert asked.stdin is not None
        assert asked.stdout is not None
        asked.stdin.write(json.dumps({"office": str(office.folder), **wish}) + "\n")
        asked.stdin.flush()
        return Ended(**json.loads(asked.stdout.readline()))


def main(template: Path) -> None:
    """Answers requests until there are no more."""
    _warm(Office(template))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_bear(json.loads(line))) + "\n")
        sys.stdout.flush()


def _warm(office: Office) -> None:
    """Imports everything, loads the compiled kernels, and computes what a release guarantees: it takes a second."""
    import flows.conducting
    import flows.publishing
    import tabulation.engines.duckdb
    from flows.code import code_digest
    from flows.estimating import tables_of
    from flows.job import Job

    assert tabulation.engines.duckdb.duckdb_engine
    code_digest()
    run = office.only_run()
    job = Job.of(office.place.private, run.id)
    tables_of(job)
    job.ledger.close()
    known = {job.plan.digest: flows.publishing.guarantee(job.plan)}
    for module in ("flows.publishing", "flows.conducting"):
        wrap(f"{module}:guarantee", lambda compute: lambda plan: known.get(plan.digest) or compute(plan))


def _bear(wish: dict[str, Any]) -> dict[str, Any]:
    listen, speak = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(listen)
        with os.fdopen(speak, "w") as sys.stderr, Path(os.devnull).open("w") as sys.stdout:
            code = _live(wish)
        os._exit(code)
    os.close(speak)
    if (delay := wish.get("delay")) is not None:
        select.select([listen], [], [], 0)
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    said = _heard(listen, pid)
    return {"code": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "said": said}


def _heard(listen: int, pid: int) -> str:
    """Everything a process says until it ends; one that takes too long is killed."""
    heard, until = [], time.monotonic() + PATIENCE
    while True:
        if not select.select([listen], [], [], max(0, until - time.monotonic()))[0]:
            os.kill(pid, signal.SIGKILL)
            heard.append(b"it took too long")
            break
        part = os.read(listen, 1 << 16)
        if not part:
            break
        heard.append(part)
    os.close(listen)
    return b"".join(heard).decode()


def _live(wish: dict[str, Any]) -> int:
    """The life of one process."""
    office = Office(Path(wish["office"]))
    tempfile.tempdir = str(office.folder / "tmp")
    note_draws(office)
    if "point" in wish:
        arm(wish["point"], wish.get("nth", 1), die)
    if wish.get("named"):
        without_unnamed_files()
    if "fault" in wish:
        FAULTS[wish["fault"]].arm()
    act: Callable[[Office], int] = by_command if wish.get("cli") else by_pipeline
    try:
        return act(office)
    except BaseException as fault:  # noqa: BLE001 - the test reads it
        sys.stderr.write(f"{type(fault).__name__}: {fault}")
        return HELD if type(fault).__name__ == "Held" else REFUSED


def note_draws(office: Office) -> None:
    """Writes a line to the office's `draws` whenever this process begins to draw noise."""

    def noted(made: Callable[[], Any]) -> Callable[[], Any]:
        def make() -> Any:
            with office.draws.open("a") as file:
                file.write("draw\n")
            return made()

        return make

    wrap("flows.measuring:Randomness", noted)


def by_pipeline(office: Office) -> int:
    """The release without Prefect."""
    from flows.pipeline import release_once

    release_once(office.spec, office.place, data=office.data, out=office.out)
    return SAID


def by_command(office: Office) -> int:
    """The command line; its steps are taken without Prefect."""
    from flows import cli, conducting

    conducting.start_early, conducting._through_prefect = no_server, take_steps
    return cli.main(arguments(office))


def arguments(office: Office) -> Sequence[str]:
    """What a person types."""
    data = [f"--data={name}={path}" for name, path in office.data.items()]
    return ["run", str(office.spec), "--ledger", office.place.ledger, "--out", str(office.out), *data]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
