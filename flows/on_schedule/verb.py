"""The verbs of scheduled releases: `margrave serve` and `margrave dataset`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from flows.inspecting import named_file
from flows.terminal import OK, say
from flows.verbs import Verbs, add_verb
from flows.workplace import LEDGER, Workplace


def add_schedule_verbs(verbs: Verbs) -> None:
    """The verbs of whoever keeps releases running on schedule."""
    serve = add_verb(
        verbs,
        "serve",
        _serve,
        help="run releases on schedule, from a deployments file",
        description="Runs the releases of a deployments file at the dates that their specs name, until it is stopped\n"
        "(SIGTERM or Ctrl-C). What fell due while nobody served is run if it is not later than max_lateness, and\n"
        "reported otherwise. An edition is released once, whatever fires twice.",
        example="margrave serve deployments.yaml\n"
        "          margrave serve deployments.yaml --work-pool office > prefect.yaml",
    )
    serve.add_argument("file", metavar="FILE", type=Path, help="a deployments file (YAML)")
    serve.add_argument(
        "--work-pool", metavar="POOL", help="serve nothing: print a prefect.yaml for the workers of this pool"
    )
    dataset = add_verb(
        verbs,
        "dataset",
        _dataset,
        help="give confidential files a name, for deployments",
        description="Keeps where confidential files are in a private file beside the ledger, which only you may read.\n"
        "Deployments name the dataset; the place itself reaches no log, server or ledger. {edition} in a path\n"
        "stands for the edition that is measured. Without NAME=PATH it says which entities a dataset has.",
        example="margrave dataset register-births births='extracts/births-{edition}.parquet'",
    )
    dataset.add_argument("name", metavar="NAME", help="the name that the deployments file uses")
    dataset.add_argument("data", metavar="ENTITY=PATH", nargs="*", type=named_file, help="the file of an entity")
    dataset.add_argument("--ledger", metavar="URL", help=f"the ledger: a file or postgresql://... ({LEDGER})")


def _serve(chosen: argparse.Namespace) -> int:
    from flows.deployments.load import load_deployments
    from flows.deployments.prefect_yaml import as_prefect_yaml
    from flows.on_schedule.supervising import serve

    if chosen.work_pool is None:
        return serve(chosen.file)
    say(as_prefect_yaml(load_deployments(chosen.file), datetime.now(UTC), pool=chosen.work_pool))
    return OK


def _dataset(chosen: argparse.Namespace) -> int:
    from flows.datasets import entities_of, write_dataset

    place = Workplace.chosen(ledger=chosen.ledger, beside=Path())
    place.open_ledger().close()
    if chosen.data:
        write_dataset(place.private, chosen.name, dict(chosen.data))
    say(f"Dataset '{chosen.name}' has a file for {', '.join(entities_of(place.private, chosen.name))}.")
    return OK
