"""The deployments file: what it says, every mistake with its place and remedy, and the `prefect.yaml` made of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from flows.deployments.language import Command, Url
from flows.deployments.load import Deployment, DeploymentsError, load_deployments
from flows.deployments.prefect_yaml import Entrypoints, as_prefect_yaml
from flows.scheduling.rdates import MOST_DATES
from flows.terminal import UserError
from tests.flows.prefect_alone import ask_prefect

EXAMPLES = Path("release_specs/examples").resolve()
WHOLE = """\
margrave: 1
deployments:
  births:
    spec: births.yaml
    data: {births: register-births}
    ledger: postgresql://db.office.example/margrave
    engine: spark
    output: releases/births
    max_lateness: 90 minutes
    notify:
      failure: [https://office.example/alarm, "mail-duty --subject 'births failed'"]
      approval: mail-reviewers
      publication: http://127.0.0.1:8080/news
  schools:
    spec: schools.yaml
    data: survey
    ledger: ledger.db
    output: releases
"""
BIRTHS = WHOLE.partition("  schools:")[0]
NOW = datetime(2026, 9, 1, tzinfo=UTC)


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """A folder with two specs, their public files and a spec without a schedule."""
    for file in (*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("*.csv")):
        shutil.copy(file, tmp_path)
    births = (tmp_path / "births.yaml").read_text()
    (tmp_path / "unscheduled.yaml").write_text(births.partition("\nschedule:")[0] + "\n")
    (tmp_path / "no_edition.yaml").write_text(births.replace("  edition: previous month\n", ""))
    (tmp_path / "broken.yaml").write_text(births.replace("25th of every month", "25th of Septober"))
    return tmp_path


def load(folder: Path, text: str) -> tuple[Deployment, ...]:
    """The deployments of a text in a folder."""
    (folder / "deployments.yaml").write_text(text)
    return load_deployments(folder / "deployments.yaml")


def said(folder: Path, text: str) -> list[str]:
    """The mistakes of a text, without the folder's name."""
    with pytest.raises(DeploymentsError) as fault:
        load(folder, text)
    return str(fault.value).replace(f"{folder}/", "").splitlines()


def test_a_whole_file_is_read_in_the_order_written(office: Path) -> None:
    births, schools = load(office, WHOLE)
    assert (births.name, births.spec.release.name, births.engine) == ("births", "births", "spark")
    assert births.ledger == "postgresql://db.office.example/margrave"
    assert (births.output, births.max_lateness) == (office / "releases/births", timedelta(minutes=90))
    assert births.hooks("failure") == (
        Url("https://office.example/alarm"),
        Command(("mail-duty", "--subject", "births failed")),
    )
    assert births.hooks("approval") == (Command(("mail-reviewers",)),)
    assert births.hooks("publication") == (Url("http://127.0.0.1:8080/news"),)
    assert births.data == {"births": "register-births"}
    assert (schools.ledger, schools.engine, schools.max_lateness) == (
        str(office / "ledger.db"),
        "duckdb",
        timedelta(days=1),
    )
    assert (set(schools.data), set(schools.data.values())) == ({"schools", "pupils"}, {"survey"})
    assert schools.hooks("failure") == ()


def test_a_deployment_knows_its_calendar_with_its_holidays(office: Path) -> None:
    births, _ = load(office, WHOLE)
    december = births.occurrences(date(2026, 12, 1), date(2027, 1, 1))
    assert [(str(one.nominal), str(one.day), one.edition) for one in december] == [
        ("2026-12-25", "2026-12-28", "2026-11")
    ]
    assert births.upcoming(NOW)[0].edition == "2026-08"


def test_what_an_orchestrator_stores_is_the_file_and_the_name(office: Path) -> None:
    births, _ = load(office, WHOLE)
    assert births.parameters == {"deployments": str(office / "deployments.yaml"), "deployment": "births"}


MISTAKES = YAML(typ="safe").load(Path(__file__).with_name("deployments_mistakes.yaml"))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake["wrong"].strip() or mistake["right"].strip())
def test_a_mistake_is_told_with_its_line_and_what_to_do(mistake: dict[str, str], office: Path) -> None:
    assert mistake["right"] in BIRTHS
    found = said(office, BIRTHS.replace(mistake["right"], mistake["wrong"], 1))
    assert found == [f"deployments.yaml:{mistake['says']}"]


@pytest.mark.parametrize(
    "place", ["secret/births.csv", "births.parquet", "~/births", "C:\\births", "postgresql://host/base", "./births"]
)
def test_the_place_of_a_confidential_file_is_refused_and_not_repeated(place: str, office: Path) -> None:
    (line,) = said(office, BIRTHS.replace("register-births", f"'{place}'"))
    assert "this looks like the place of a confidential file" in line
    assert line.startswith("deployments.yaml:5:")
    assert place not in line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "1:1: found nothing; expected margrave: 1 and deployments"),
        ("- births", "1:1: found a list; expected margrave: 1 and deployments"),
        ("margrave: 1\ndeployments: births", "2:1: deployments: found 'births'; expected deployments: {NAME"),
        ("margrave: 1\ndeployments: {}", "2:1: deployments: found no deployment; expected deployments: {NAME"),
        ("margrave: 1\n", "1:1: deployments: found no deployment; expected deployments: {NAME"),
        ("margrave: 1\ndeployments:\n  births: [x]", "3:3: deployments.births: found a list; expected spec, data"),
        ("margrave: 1\ndeployments:\n  a: {}\n  a: {}", "4:3: deployments.a: 'a' stands here twice"),
        ("margrave: 1\ndeployments: {a: {notify: x}}", "2:27: deployments.a.notify: found 'x'; expected a mapping"),
        ("margrave: 1\n\tdeployments:", "2:1: a tab is used for indentation"),
    ],
)
def test_a_file_of_another_shape_is_told_what_is_expected(text: str, line: str, office: Path) -> None:
    assert any(found.startswith(f"deployments.yaml:{line}") for found in said(office, text))


def test_a_file_that_is_not_there_is_told(office: Path) -> None:
    with pytest.raises(DeploymentsError, match=r"none.yaml:1:1: there is no such file"):
        load_deployments(office / "none.yaml")


def test_every_mistake_of_every_deployment_is_told_at_once(office: Path) -> None:
    text = WHOLE.replace("engine: spark", "engine: sparc").replace("90 minutes", "soon")
    text = text.replace("spec: schools.yaml", "spec: nowhere.yaml").replace("margrave: 1", "margrave: 3")
    assert [line.split(": ")[0] for line in said(office, text)] == [
        "deployments.yaml:1:11",
        "deployments.yaml:7:13",
        "deployments.yaml:9:19",
        "deployments.yaml:15:11",
    ]


def test_entities_without_a_reference_are_named(office: Path) -> None:
    (line,) = said(office, WHOLE.replace("data: survey", "data: {schools: survey}"))
    assert line == "deployments.yaml:16:5: deployments.schools.data: no reference for pupils; add pupils: NAME"


def test_two_deployments_of_one_release_are_refused(office: Path) -> None:
    (line,) = said(office, WHOLE.replace("spec: schools.yaml", "spec: births.yaml"))
    assert line == (
        "deployments.yaml:15:11: deployments.schools.spec: "
        "'births' publishes the release 'births' already; keep one of the two"
    )


def test_a_mistake_of_the_file_is_a_mistake_of_the_user() -> None:
    assert issubclass(DeploymentsError, UserError)


def test_prefect_reads_the_file_of_a_work_pool_as_we_mean_it(office: Path) -> None:
    both = load(office, WHOLE)
    text = as_prefect_yaml(both, NOW, pool="office", entrypoints=Entrypoints("flows.a.measure", "flows.a.publish"))
    read = ask_prefect("prefect_files.py", text, office)
    assert read["pull"] == []
    assert [one["name"] for one in read["deployments"]] == [
        "births-measure", "births-publish", "schools-measure", "schools-publish",
    ]  # fmt: skip
    for one, ours in zip(read["deployments"], (both[0], both[0], both[1], both[1]), strict=True):
        verb = one["name"].partition("-")[2]
        assert one["entrypoint"] == f"flows.a.{verb}"
        assert (one["parameters"], one["work_pool"]) == (ours.parameters, {"name": "office"})
        assert one["concurrency_limit"] == {"limit": 1, "collision_strategy": "ENQUEUE"}
        moments = [ahead.measuring if verb == "measure" else ahead.publication for ahead in ours.upcoming(NOW)]
        assert one["moments"] == [[moment.isoformat() for moment in moments]]


def test_nothing_of_the_references_or_hooks_reaches_prefect(office: Path) -> None:
    text = as_prefect_yaml(load(office, WHOLE), NOW, pool="office", entrypoints=Entrypoints("a.m", "a.p"))
    for word in ("register-births", "survey", "postgresql", "mail-duty", "alarm", "releases"):
        assert word in WHOLE
        assert word not in text


def test_a_deployment_that_measures_and_publishes_at_once_has_one_schedule(office: Path) -> None:
    (office / "births.yaml").write_text((office / "births.yaml").read_text().replace("  measure: 2 days before\n", ""))
    text = as_prefect_yaml(load(office, BIRTHS), NOW, pool="office", entrypoints=Entrypoints("a.m", "a.p"))
    measure, publish = ask_prefect("prefect_files.py", text, office)["deployments"]
    assert (len(measure["moments"]), publish["moments"]) == (1, [])


def test_a_daily_deployment_lists_as_many_dates_as_prefect_accepts(office: Path) -> None:
    births = (office / "births.yaml").read_text()
    daily = births.replace("  day: 25th of every month\n  time: 08:30\n", '  cron: "30 8 * * *"\n')
    assert daily != births
    (office / "births.yaml").write_text(daily.replace("if_weekend: next Monday", "if_weekend: keep"))
    text = as_prefect_yaml(load(office, BIRTHS), NOW, pool="office", entrypoints=Entrypoints("a.m", "a.p"))
    measure, publish = ask_prefect("prefect_files.py", text, office)["deployments"]
    assert (len(measure["moments"][0]), len(publish["moments"][0])) == (MOST_DATES, MOST_DATES)


def test_the_calendar_and_the_file_need_no_orchestrator() -> None:
    code = (
        "import sys, flows.deployments.prefect_yaml, flows.scheduling.due; "
        "sys.exit(any(name.partition('.')[0] == 'prefect' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
