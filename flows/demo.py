"""`make demo`: a whole release on generated microdata, end to end, with the commands that a statistician would type."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from flows.cli import main as margrave
from flows.server import stop_server
from flows.terminal import OK, say
from flows.workplace import LEDGER_VARIABLE
from release_specs.load import load_spec
from tabulation.synthesize import synthesize

EXAMPLES = Path(__file__).parents[1] / "release_specs" / "examples"
SPEC, EDITION, CAP = "households.yaml", "2025", "2"
OUT, SERVER = Path("build") / "demo", Path("build") / "server"
RECORDS, SEED, SHOWN_ROWS = 36_000, 1, 8


def main() -> int:
    """Writes a spec, generates its microdata, founds a ledger, releases, verifies and rebuilds the tables."""
    shutil.rmtree(OUT, ignore_errors=True)
    shutil.copytree(EXAMPLES, OUT)
    os.environ.setdefault("MARGRAVE_SERVER_HOME", str(SERVER.resolve()))
    os.environ[LEDGER_VARIABLE] = str(OUT / "office.ledger")
    spec = OUT / SPEC
    say(f"1. A statistician writes one spec: {spec}\n\n" + "".join(f"     {line}" for line in _excerpt(spec)))
    say(f"\n2. {RECORDS:,} invented records stand in for the confidential files. Nobody in them is real.\n")
    loaded = load_spec(spec)
    made = synthesize(loaded.spec, loaded.domain, records=RECORDS, seed=SEED, out=OUT / "microdata", folder=OUT)
    data = [word for file in made for word in ("--data", f"{file.entity}={file.path}")]
    release = OUT / "releases" / f"{loaded.spec.release.name}-{EDITION}"
    edition = ["--edition", EDITION]
    steps: dict[str, list[str]] = {
        "3. The office founds its ledger": ["ledger", "init", "--solo", "--office", "Demo Office"],
        "4. and opens the account that the spec names": ["ledger", "grant", str(spec), "--cap", CAP, *edition],
        "5. The release: paid once, drawn once, published whole": ["run", str(spec), *edition, *data],
        "6. Anybody can check what was published": ["verify", str(release)],
        "7. and rebuild it from the published measurements": ["replay", str(release)],
        "8. What the ledger says now": ["ledger", "show"],
    }
    try:
        for title, words in steps.items():
            if (code := _step(title, words)) != OK:
                return code
    finally:
        stop_server()
    _show(release / "tables" / "sex_by_age.csv")
    say(f"\nThe release is in {release}. The confidential files, the ledger and the private folder stay in {OUT}.")
    return OK


def _step(title: str, words: list[str]) -> int:
    """One command, shown before it runs."""
    say(f"\n{title}\n\n   $ margrave {shlex.join(words)}\n")
    sys.stdout.flush()
    return margrave(words)


def _excerpt(path: Path) -> Iterator[str]:
    """The lines of the spec that say whom to protect and what to publish."""
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.startswith((" ", "#", "\n")):
            inside = line.startswith(("privacy:", "tables:"))
        if inside and line.strip():
            yield line


def _show(file: Path) -> None:
    rows = pd.read_csv(file, dtype=str, keep_default_na=False).head(SHOWN_ROWS)
    say(f"\n9. A published table, {file}")
    say("   `value` is published; `estimate` is unbiased, and the margin of error is its own\n\n")
    say("".join(f"     {line}\n" for line in rows.to_string(index=False).splitlines()))


if __name__ == "__main__":
    sys.exit(main())
