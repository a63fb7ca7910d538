"""Generated files: the same bytes each time, marked, proved, and never in the place of somebody else's."""

import json
import re
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release_specs.load import Loaded
from tabulation.synthesize import GeneratedFile, SynthesisError, is_generated, synthesize
from tests.tabulation.reading import frame_of
from tests.tabulation.town import TOWN, load_town

KEYS = {"dwelling_id", "line"}


def generate(
    folder: Path, out: str = "out", *, seed: int = 1, text: str = TOWN, form: str = "parquet", dirt: str = "0"
) -> tuple[GeneratedFile, ...]:
    loaded = load_town(folder, text)
    return synthesize(
        loaded.spec, loaded.domain, records=500, seed=seed, out=folder / out, form=form, dirt=Fraction(dirt)
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("dirt", ["0", "1/10"])
def test_the_same_spec_records_and_seed_give_the_same_bytes(tmp_path: Path, form: str, dirt: str) -> None:
    for out in ("one", "two"):
        generate(tmp_path, out, form=form, dirt=dirt)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert sorted(contents(tmp_path / "one")) == ["GENERATED.json", f"dwellings.{form}", f"people.{form}"]


def test_another_seed_gives_other_people(tmp_path: Path) -> None:
    one, two = (frame_of(generate(tmp_path, str(seed), seed=seed)[1].path) for seed in (1, 2))
    for column in ("place", "sex", "age", "income", "zone"):
        assert one[column].tolist() != two[column].tolist()


def test_a_new_column_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    more = TOWN.replace("      sex:     {codes", "      hair:    {codes: [dark, fair]}\n      sex:     {codes")
    before, after = (frame_of(generate(tmp_path, str(len(text)), text=text)[1].path) for text in (TOWN, more))
    assert list(after) != list(before)
    assert after[list(before)].equals(before)


def test_a_parquet_file_says_that_it_was_generated(tmp_path: Path) -> None:
    for file in generate(tmp_path, seed=7):
        facts = json.loads(pq.read_metadata(file.path).metadata[b"margrave.generated"])
        assert (facts["spec"], facts["seed"], facts["records"]) == ("town", 7, 500)
        assert facts["version"]
        assert "no record describes a real person" in facts["sentence"]


def test_the_sidecar_lists_every_file_with_its_hash(tmp_path: Path) -> None:
    files = generate(tmp_path, seed=7, form="csv")
    sidecar = json.loads((tmp_path / "out" / "GENERATED.json").read_text())
    assert sidecar["sentence"] == "Generated microdata: no record describes a real person."
    assert sidecar["files"] == [
        {"file": file.path.name, "sha256": sha256(file.path.read_bytes()).hexdigest(), "rows": file.rows, "seed": 7}
        for file in files
    ]


def test_columns_have_the_types_a_reader_expects(tmp_path: Path) -> None:
    dwellings, people = (pq.read_schema(file.path) for file in generate(tmp_path))
    assert dwellings.field("zone").type == pa.string(), "areas keep their leading zeros"
    assert dwellings.field("rooms").type == pa.int64()
    assert dwellings.field("rent").type == pa.float64()
    assert dwellings.field("built").type == pa.date32()
    assert people.field("income").type == pa.string(), "its no value is spelled with a letter"


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_generated_files_are_known_as_such(tmp_path: Path, form: str) -> None:
    assert all(is_generated(file.path) for file in generate(tmp_path, form=form))


def test_a_parquet_file_is_known_without_its_sidecar(tmp_path: Path) -> None:
    file = generate(tmp_path)[1]
    (tmp_path / "out" / "GENERATED.json").unlink()
    moved = file.path.rename(tmp_path / "moved.parquet")
    assert is_generated(moved)


def test_a_text_file_is_not_known_without_its_sidecar(tmp_path: Path) -> None:
    file = generate(tmp_path, form="csv")[1]
    (tmp_path / "out" / "GENERATED.json").unlink()
    assert not is_generated(file.path)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_file_with_one_byte_changed_is_not_a_generated_one(tmp_path: Path, form: str) -> None:
    file = generate(tmp_path, form=form)[1]
    content = bytearray(file.path.read_bytes())
    content[len(content) // 3] ^= 1
    file.path.write_bytes(content)
    assert not is_generated(file.path)


def test_a_parquet_file_written_anew_with_the_old_metadata_is_not_a_generated_one(tmp_path: Path) -> None:
    file = generate(tmp_path)[1]
    table = pq.read_table(file.path)
    real = table.set_column(0, "dwelling_id", pa.array(range(table.num_rows)))
    assert b"margrave.generated" in real.schema.metadata
    pq.write_table(real, file.path)
    assert not is_generated(file.path)


def test_nothing_and_nonsense_are_not_generated(tmp_path: Path) -> None:
    (tmp_path / "nonsense.parquet").write_bytes(b"PAR1 and nothing more")
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "GENERATED.json").write_text("[]")
    for name in ("nonsense.parquet", "empty.parquet", "missing.parquet", "."):
        assert not is_generated(tmp_path / name)


def test_generated_files_may_be_generated_anew(tmp_path: Path) -> None:
    generate(tmp_path, seed=1)
    files = generate(tmp_path, seed=2)
    assert all(is_generated(file.path) for file in files)
    listed = json.loads((tmp_path / "out" / "GENERATED.json").read_text())["files"]
    assert [(entry["file"], entry["seed"]) for entry in listed] == [("dwellings.parquet", 2), ("people.parquet", 2)]


def test_files_of_another_format_stay_listed(tmp_path: Path) -> None:
    texts = generate(tmp_path, form="csv")
    generate(tmp_path, form="parquet")
    assert all(is_generated(file.path) for file in texts)


@pytest.mark.parametrize("name", ["people.parquet", "people.csv", "GENERATED.json"])
def test_a_file_that_was_not_generated_is_never_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("real records")
    with pytest.raises(SynthesisError, match=rf"{name} exists and .* choose another folder"):
        generate(tmp_path, form="csv" if name.endswith("csv") else "parquet")
    assert contents(tmp_path / "out") == {name: b"real records"}


def test_an_edited_file_is_not_overwritten_either(tmp_path: Path) -> None:
    file = generate(tmp_path, form="csv")[0]
    file.path.write_text(file.path.read_text() + "9,001,2026,H,1,,2000-01-01,,both\n")
    with pytest.raises(SynthesisError, match="may hold real records"):
        generate(tmp_path, form="csv")


def test_a_failure_leaves_no_half_written_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object, path: Path, *__: object) -> None:
        path.write_text("half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tabulation.synthetic.files._write_parquet", full)
    with pytest.raises(SynthesisError, match="cannot be written: No space left on device; free space"):
        generate(tmp_path)
    assert contents(tmp_path / "out") == {}


def test_a_run_that_breaks_off_leaves_files_that_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.replace

    def broken(self: Path, target: Path) -> Path:
        if target.name == "people.csv":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    files = generate(tmp_path, seed=1, form="csv")
    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(SynthesisError, match="Input/output error"):
        generate(tmp_path, seed=2, form="csv")
    monkeypatch.undo()
    assert all(is_generated(file.path) for file in files), "one is new, one is old"
    assert generate(tmp_path, seed=2, form="csv")


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(SynthesisError, match="is a file; name a folder"):
        generate(tmp_path)


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"records": 0}, "ask for at least 1"),
        ({"seed": -1}, "whole number of at least 0"),
        ({"form": "xlsx"}, "choose parquet or csv"),
        ({"dirt": Fraction(3, 2)}, "from 0 to 1"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(tmp_path: Path, wish: dict[str, object], message: str) -> None:
    loaded = load_town(tmp_path)
    wishes = {"records": 10, "seed": 1, "out": tmp_path / "out", **wish}
    with pytest.raises(SynthesisError, match=message):
        synthesize(loaded.spec, loaded.domain, **wishes)
    assert not (tmp_path / "out").exists()


def test_text_and_parquet_hold_the_same_values(tmp_path: Path) -> None:
    for text, table in zip(generate(tmp_path, "t", form="csv"), generate(tmp_path, "p"), strict=True):
        assert frame_of(text.path).equals(frame_of(table.path))


def test_text_is_written_as_the_spec_says_it_is_read(tmp_path: Path) -> None:
    read = 'read: {delimiter: ";", decimal: ",", encoding: latin-1, missing: [NULL, ""]}'
    text = TOWN.replace("    key: dwelling_id\n", f"    key: dwelling_id\n    {read}\n").replace("F: Flat", "Ä: Flat")
    file = generate(tmp_path, text=text.replace("[H, F]", "[H, Ä]").replace("kind: F", "kind: Ä"), form="csv")[0]
    content = file.path.read_bytes().decode("latin-1")
    assert content.startswith("dwelling_id;zone;year;kind;rooms;rent;built;staff;side\n1;")
    assert ";NULL;" in content
    assert ";Ä;" in content
    assert re.search(r";\d+,5;", content)
    assert '"' not in content


def test_a_code_with_a_delimiter_in_it_is_quoted(tmp_path: Path) -> None:
    text = TOWN.replace("[here, near, far]", '["here, or near", far]')
    file = generate(tmp_path, text=text, form="csv")[1]
    assert set(frame_of(file.path)["born"]) == {"here, or near", "far", "U"}


def spoilt(loaded: Loaded, folder: Path, share: str, form: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The people without and with dirt."""
    frames = []
    for dirt in (Fraction(0), Fraction(share)):
        out = folder / f"dirt-{dirt.numerator}-{form}"
        files = synthesize(loaded.spec, loaded.domain, records=3000, seed=1, out=out, form=form, dirt=dirt)
        frames.append(frame_of(files[1].path))
    return frames[0], frames[1]


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_dirt_spoils_its_share_of_the_cells_and_no_key(tmp_path: Path, form: str) -> None:
    clean, dirty = spoilt(load_town(tmp_path), tmp_path, "1/5", form)
    for column in clean:
        changed = sum(map(lambda a, b: a != b, clean[column], dirty[column])) / len(clean)
        if column in KEYS:
            assert changed == 0
        elif column not in ("tongue2", "tongue3"):
            assert 0.12 < changed < 0.22, column
    assert dirty["sex"].isna().any()
    assert set(dirty["sex"].dropna()) - {"1", "2"}
    ages = {age for age in dirty["age"].dropna() if not (age.isdigit() and int(age) <= 105)}
    assert ages, "some ages are outside the domain"
    if form == "csv":
        assert any(age.strip() != age for age in ages), "some numbers are oddly spelled"


def test_dirty_parquet_files_keep_their_types(tmp_path: Path) -> None:
    clean, dirty = (generate(tmp_path, dirt, dirt=dirt) for dirt in ("0", "1/2"))
    for one, other in zip(clean, dirty, strict=True):
        assert pq.read_schema(one.path).types == pq.read_schema(other.path).types
        assert is_generated(other.path)
