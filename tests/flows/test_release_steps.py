"""The steps of a release, one after the other, without Prefect."""

from __future__ import annotations

import json
import stat
from io import BytesIO
from pathlib import Path

import pytest
from pyarrow import parquet

from flows.checking import checks_of
from flows.estimating import estimate
from flows.job import Job
from flows.ledger.errors import Held, Refused
from flows.measuring import measure
from flows.planning.noise import noise_of
from flows.preparing import Order, Persons, prepare
from flows.publishing import publish
from flows.reissuing import reissue
from flows.reviewing import COLUMNS, OTHERS, compare, decide
from flows.stored import FILE, StoredError, hash_of
from flows.terminal import UserError
from flows.workplace import DATASET
from reporting.manifest import SUPERSEDED, read_manifest
from reporting.replay import replay
from tabulation.errors import MicrodataError
from tabulation.tabulate import tell_nobody
from tests.flows.offices import ACCOUNT, SPEC, Office, office


@pytest.fixture
def town(tmp_path: Path) -> Office:
    """An office of one person."""
    return office(tmp_path / "town")


def test_one_person_releases_in_two_steps_and_everything_verifies(town: Office, tmp_path: Path) -> None:
    made = town.release()
    checks = list(checks_of(made.folder, town.ledger()))
    assert [one for one in checks if not one.ok] == []
    assert {"signature", "price", "charges", "publication", "ledger chain"} <= {one.name for one in checks}
    out = tmp_path / "again"
    out.mkdir()
    assert replay(made.folder, out, noise_of=noise_of) == []
    (run,) = town.ledger().books().runs.values()
    assert (run.state, run.attempts, run.spent) == ("published", 1, run.asked.price)


def test_the_same_command_again_changes_nothing(town: Office) -> None:
    first = town.release()
    head = town.ledger().anchor()
    job = town.prepare()
    assert job.known.state == "published"
    assert town.ledger().anchor() == head
    assert read_manifest(first.folder).run == job.run


def test_what_is_stored_is_read_and_never_drawn_again(town: Office) -> None:
    job = town.prepare()
    measure(job, tell=tell_nobody)
    before = hash_of(job.folder / FILE)
    measure(town.prepare(), tell=tell_nobody)
    assert hash_of(job.folder / FILE) == before
    assert job.ledger.books().runs[job.run].attempts == 1


def test_a_file_that_was_linked_before_a_crash_is_taken_as_it_is(town: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    job = town.prepare()

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("flows.ledger.ledger.Ledger.store", stop)
        with pytest.raises(KeyboardInterrupt):
            measure(job, tell=tell_nobody)
    before = hash_of(job.folder / FILE)
    measure(town.prepare(), tell=tell_nobody)
    found = town.ledger().books().runs[job.run]
    assert found.stored is not None
    assert (found.stored.sha256, found.attempts) == (before, 1)


def test_changed_measurements_are_noticed(town: Office) -> None:
    job = town.prepare()
    measure(job, tell=tell_nobody)
    data = bytearray((job.folder / FILE).read_bytes())
    data[-1] ^= 1
    (job.folder / FILE).write_bytes(data)
    with pytest.raises(StoredError, match="hash is not the one in the ledger"):
        estimate(job, tell=tell_nobody)


def test_a_structural_fault_costs_nothing_and_gives_the_reservation_back(town: Office) -> None:
    job = town.prepare()
    Path(town.data["persons"]).unlink()
    with pytest.raises(MicrodataError):
        measure(job, tell=tell_nobody)
    books = town.ledger().books()
    assert books.runs[job.run].state == "released"
    assert books.left(("town", "once")) == books.policies["town", "once"].cap
    assert not (job.folder / DATASET).exists()


def test_another_spec_under_the_same_edition_is_refused_until_the_run_is_given_up(town: Office) -> None:
    job = town.prepare()
    town.rewrite(lambda text: text.replace("people: 1/4", "people: 1/3"))
    with pytest.raises(UserError, match="under another spec"):
        town.prepare()
    job.ledger.release(job.run)
    assert town.prepare().run != job.run


def test_a_run_reads_its_own_copy_of_the_spec(town: Office) -> None:
    job = town.prepare()
    town.rewrite(lambda _: "nonsense")
    measure(job, tell=tell_nobody)
    estimate(job, tell=tell_nobody)
    assert publish(job, tell=tell_nobody).folder.is_dir()


def test_private_files_are_closed_to_others_and_gone_when_they_served(town: Office) -> None:
    job = town.prepare()
    assert stat.S_IMODE((job.folder / DATASET).stat().st_mode) == 0o600
    measure(job, tell=tell_nobody)
    assert not (job.folder / DATASET).exists()
    estimate(job, tell=tell_nobody)
    publish(job, tell=tell_nobody)
    assert {path.name for path in job.folder.iterdir()} == {FILE, "order.json", "spec"}
    for path in (town.place.private, job.folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((job.folder / FILE).stat().st_mode) == 0o600


def test_an_open_private_folder_is_refused(town: Office) -> None:
    town.prepare()
    town.place.private.chmod(0o755)
    with pytest.raises(UserError, match="closed to others"):
        town.prepare()


def test_an_account_must_be_opened_even_by_one_person(tmp_path: Path) -> None:
    made = office(tmp_path, text=SPEC.replace("delta: 1e-10}}", f"delta: 1e-10}}, {ACCOUNT}}}"))
    with pytest.raises(Refused, match="no budget for 'all editions'"):
        made.prepare(edition="2025")


def test_the_custodian_sees_how_far_tables_are_off_and_may_reject(town: Office) -> None:
    job = town.prepare()
    measure(job, tell=tell_nobody)
    estimate(job, tell=tell_nobody)
    path = compare(job, data=town.data, tell=tell_nobody)
    lines = path.read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    whole = next(line.split(",") for line in lines if line.startswith("people.count@land,land"))
    assert whole[3] == "400"  # the truth, which is why the file is private
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    decide(job, by="Cleo", reason="unfit-for-use")
    assert not path.exists()
    assert not job.candidate.exists()
    estimate(job, tell=tell_nobody)
    with pytest.raises(Refused, match="was rejected"):
        publish(job, tell=tell_nobody)


def test_a_review_takes_only_the_files_of_the_run(town: Office, tmp_path: Path) -> None:
    job = town.prepare()
    measure(job, tell=tell_nobody)
    other = office(tmp_path / "other", seed=2)
    with pytest.raises(Refused, match="not the files"):
        compare(job, data=other.data, tell=tell_nobody)


def test_a_correction_is_a_new_version_without_a_charge_and_marks_the_old_one(town: Office) -> None:
    first = town.release()
    spent = town.ledger().books().spent(("town", "once"))
    town.rewrite(lambda text: text.replace("1: Female", "1: Women"))
    second = reissue(town.prepare(), reason="a label was wrong", spec=town.spec, tell=tell_nobody)
    assert second.version == 2
    assert json.loads((first.folder / SUPERSEDED).read_text()) == {
        "by": second.folder.name,
        "reason": "a label was wrong",
    }
    ledger = town.ledger()
    assert ledger.books().spent(("town", "once")) == spent
    for made in (first, second):
        assert all(one.ok for one in checks_of(made.folder, ledger))
    tables = [sorted(path.name for path in (made.folder / "tables").iterdir()) for made in (first, second)]
    assert tables[0] == tables[1]
    assert read_manifest(second.folder).ledger["reissued_because"] == "a label was wrong"


def test_a_correction_measures_nothing_new(town: Office) -> None:
    town.release()
    job = town.prepare()
    town.rewrite(lambda text: text.replace("at: [land, part]", "at: [land, part, spot]"))
    with pytest.raises(UserError, match="asks for other measurements"):
        reissue(job, reason="more", spec=town.spec, tell=tell_nobody)


def test_an_office_holds_a_run_until_distinct_persons_who_are_not_involved_approve(tmp_path: Path) -> None:
    text = SPEC.replace("delta: 1e-10}}", "delta: 1e-10}, approvals: {to_spend: 2, to_publish: 1}}")
    made = office(tmp_path, persons=("Ada", "Ben", "Cleo", "Rita"), text=text)
    _granted(made)
    job = made.prepare()
    with pytest.raises(Held) as held:
        measure(job, tell=tell_nobody)
    assert job.known.state == "identified"
    subject = held.value.pending.subject
    for person in ("Ada", "Rita"):  # Rita started it
        job.ledger.approve(subject, made.keys[person])
    with pytest.raises(Held, match="given so far by Ada; Omar and Rita may not"):
        measure(job, tell=tell_nobody)
    job.ledger.approve(subject, made.keys["Ben"])
    measure(job, tell=tell_nobody)
    estimate(job, tell=tell_nobody)
    with pytest.raises(Held) as waits:
        publish(job, tell=tell_nobody)
    job.ledger.approve(waits.value.pending.subject, made.keys["Cleo"])
    release = publish(job, tell=tell_nobody)
    told = read_manifest(release.folder).ledger
    assert told["approved_to_spend"] == ["Ada", "Ben"]
    assert not told["solo"]


def _granted(made: Office) -> None:
    from flows.ledger.books import Policy
    from flows.plan import plan_release
    from flows.preparing import identity_of
    from release_specs.load import load_spec

    loaded = load_spec(made.spec)
    plan = plan_release(loaded, folder=made.folder)
    ledger = made.ledger()
    policy = Policy("town", "once", plan.currency, plan.budget, plan.delta, identity_of(loaded.spec), "", 0, 0)
    with pytest.raises(Held) as held:
        ledger.grant(policy)
    for person in ("Ada", "Ben"):
        ledger.approve(held.value.pending.subject, made.keys[person])
    ledger.grant(policy)


def second_release(town: Office, name: str, data: dict[str, str]) -> Job:
    """Another release of the office that is an account of its own, prepared and no further."""
    spec = town.folder / f"{name}.yaml"
    spec.write_text(SPEC.replace("name: town", f"name: {name}"))
    order = Order("", None, town.place.ledger, str(town.folder / "releases"))
    return Job(town.place, prepare(spec, town.place, order, data=data, persons=Persons("Rita", "Omar")))


def test_a_file_is_paid_by_one_account_whatever_its_records_say(town: Office) -> None:
    town.release()
    file = Path(town.data["persons"])
    for turn, records in enumerate((file.read_bytes(), _one_row_less(file))):
        file.write_bytes(records)
        job = second_release(town, f"second-{turn}", town.data)
        with pytest.raises(Refused, match="files of these names were released under account 'town'"):
            measure(job, tell=tell_nobody)
        assert job.known.charged == []


def test_the_same_records_under_another_name_are_told_to_the_custodian_alone(town: Office) -> None:
    town.release()
    copy = town.folder / "copy.parquet"
    copy.write_bytes(Path(town.data["persons"]).read_bytes())
    job = second_release(town, "second", {"persons": str(copy)})
    measure(job, tell=tell_nobody)
    compare(job, data={"persons": str(copy)}, tell=tell_nobody)
    note = job.folder / OTHERS
    assert "also paid for by account town" in note.read_text()
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    decide(job, by="Omar", reason="")
    assert not note.exists()


def _one_row_less(file: Path) -> bytes:
    table, into = parquet.read_table(file), BytesIO()
    parquet.write_table(table.slice(1), into)
    return into.getvalue()
