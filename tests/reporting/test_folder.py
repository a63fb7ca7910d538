"""Release folders: written whole or not at all, the same bytes each time, and made again from what they hold."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reporting.check_release import check_release
from reporting.errors import ReleaseFault
from reporting.folder import PREFIX, sweep_aside
from reporting.manifest import Manifest, check_hashes, hashes_of, read_manifest
from reporting.replay import replay
from tests.estimation.made_up import Laplace
from tests.reporting.releases import Made, example, homes, noise_of, small

MAKERS: dict[str, Callable[[Path], Made]] = {
    "small": small,
    "homes with two-sided geometric noise": lambda folder: homes(folder, noise=Laplace(3.0)),
    "births": lambda folder: example("births", folder),
    "schools": lambda folder: example("schools", folder),
    "households": lambda folder: example("households", folder),
    "homes": homes,
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return small(tmp_path_factory.mktemp("spec"))


def faults_of(folder: Path) -> dict[str, str]:
    """The checks that fail, with what they say."""
    return {check.name: check.detail for check in check_release(folder) if not check.ok}


@pytest.mark.parametrize("name", MAKERS)
def test_a_release_is_whole_verified_and_made_again_byte_for_byte(name: str, tmp_path: Path) -> None:
    (tmp_path / "spec").mkdir()
    given = MAKERS[name](tmp_path / "spec")
    manifest = given.publish(tmp_path / "release")
    assert read_manifest(tmp_path / "release") == manifest
    assert faults_of(tmp_path / "release") == {}
    assert len(check_release(tmp_path / "release")) == 7
    for path in (tmp_path / "spec").iterdir():
        path.unlink()  # nothing but the release is looked at
    assert replay(tmp_path / "release", tmp_path / "again", noise_of=noise_of) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_same_release_written_twice_has_the_same_bytes(release: Made, tmp_path: Path) -> None:
    for name in ("one", "other"):
        release.publish(tmp_path / name)
    assert hashes_of(tmp_path / "one") == hashes_of(tmp_path / "other")
    assert (tmp_path / "one" / "manifest.json").read_bytes() == (tmp_path / "other" / "manifest.json").read_bytes()
    assert {path.split("/")[0] for path in hashes_of(tmp_path / "one")} == {
        "tables",
        "not_stated",
        "measurements",
        "spec",
    }


def test_a_signature_is_over_the_manifest_without_it(release: Made, tmp_path: Path) -> None:
    seen: list[bytes] = []

    def sign(data: bytes) -> Mapping[str, Any]:
        seen.append(data)
        return {"key": "office", "signature": "ab"}

    manifest = release.publish(tmp_path / "release", sign=sign)
    read = read_manifest(tmp_path / "release")
    assert read.signature == manifest.signature == {"key": "office", "signature": "ab"}
    assert seen == [read.to_be_signed()]
    assert b"office" not in seen[0]


def test_further_files_are_part_of_the_release(release: Made, tmp_path: Path) -> None:
    release.publish(tmp_path / "release", add=lambda folder: write(folder / "report.html", "<p>"))
    assert "report.html" in read_manifest(tmp_path / "release").files
    assert faults_of(tmp_path / "release") == {}


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_all_may_read_a_release_whatever_the_mask_of_the_process(release: Made, tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        release.publish(tmp_path / "release")
    finally:
        os.umask(before)
    modes = {path.is_dir(): set[int]() for path in (tmp_path / "release", tmp_path / "release" / "manifest.json")}
    for path in (tmp_path / "release", *(tmp_path / "release").rglob("*")):
        modes[path.is_dir()].add(stat.S_IMODE(path.stat().st_mode))
    assert modes == {True: {0o755}, False: {0o644}}


@pytest.mark.parametrize("kind", ["folder", "empty folder", "file", "link to nowhere"])
def test_what_stands_at_the_target_is_never_overwritten(release: Made, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "release"
    if kind == "file":
        write(target, "kept")
    elif kind == "link to nowhere":
        target.symlink_to(tmp_path / "nowhere")
    else:
        target.mkdir()
        if kind == "folder":
            write(target / "kept", "kept")
    with pytest.raises(ReleaseFault, match="never overwritten"):
        release.publish(target)
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
    assert target.is_symlink() or target.is_file() or len(list(target.iterdir())) == (kind == "folder")


def test_a_release_needs_a_folder_to_stand_in(release: Made, tmp_path: Path) -> None:
    with pytest.raises(ReleaseFault, match="make it first"):
        release.publish(tmp_path / "nowhere" / "release")


class StoppedError(Exception):
    """What breaks in the middle."""


def stop(_: object) -> Any:
    """Breaks."""
    raise StoppedError


@pytest.mark.parametrize("part", [0, 1 / 7, 1 / 3, 1 / 2, 4 / 5, 1])
def test_a_disk_that_fails_at_any_moment_leaves_nothing_behind(
    release: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: float
) -> None:
    real, synced = os.fsync, list[int]()

    def sync(opened: int, *, until: float = float("inf")) -> None:
        synced.append(opened)
        if len(synced) > until:
            raise OSError(28, "No space left on device")
        real(opened)

    (tmp_path / "before").mkdir()
    monkeypatch.setattr(os, "fsync", sync)
    release.publish(tmp_path / "before" / "release")
    until = part * (len(synced) - 2)  # the last two are of the folder itself and of that which holds it
    synced.clear()
    monkeypatch.setattr(os, "fsync", lambda opened: sync(opened, until=until))
    (tmp_path / "here").mkdir()
    with pytest.raises(OSError, match="No space left"):
        release.publish(tmp_path / "here" / "release")
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("where", ["add", "sign"])
def test_a_part_that_breaks_leaves_nothing_behind(release: Made, tmp_path: Path, where: str) -> None:
    with pytest.raises(StoppedError):
        release.publish(tmp_path / "release", **{where: stop})
    assert list(tmp_path.iterdir()) == []


def test_being_interrupted_leaves_nothing_behind(release: Made, tmp_path: Path) -> None:
    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release.publish(tmp_path / "release", add=interrupted)
    assert list(tmp_path.iterdir()) == []


def test_a_release_that_does_not_hold_is_not_published(release: Made, tmp_path: Path) -> None:
    def spoil(folder: Path) -> None:
        path = folder / "tables" / "people.csv"
        lines = path.read_text(encoding="utf-8").splitlines()
        row = lines[1].split(",")
        row[4] = str(int(row[4]) + 1)
        write(path, "\n".join([lines[0], ",".join(row), *lines[2:], ""]))

    with pytest.raises(ReleaseFault, match=r"was not published.*promises: table 'people'"):
        release.publish(tmp_path / "release", add=spoil)
    assert list(tmp_path.iterdir()) == []


def test_nobody_sees_a_release_that_is_being_written(release: Made, tmp_path: Path) -> None:
    seen: list[int] = []

    def look(folder: Path) -> None:
        seen.append(stat.S_IMODE(folder.stat().st_mode))
        assert folder.name.startswith(".")
        assert not (tmp_path / "release").exists()

    release.publish(tmp_path / "release", add=look)
    assert seen == [0o700]


def test_what_a_killed_process_left_aside_is_swept_and_what_lives_is_not(tmp_path: Path) -> None:
    dead, alive, young, other = (tmp_path / name for name in (f"{PREFIX}a", f"{PREFIX}b", f"{PREFIX}c", "release"))
    for folder in (dead, alive, young, other):
        folder.mkdir()
        write(folder / "part", "half")
        if folder is not young:
            os.utime(folder, (time.time() - 60,) * 2)
    lock = os.open(alive, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert sweep_aside(tmp_path) == [dead.name]
    finally:
        os.close(lock)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, young.name, "release"])


def test_a_reissue_is_another_folder_with_its_own_version(release: Made, tmp_path: Path) -> None:
    release.publish(tmp_path / "v1")
    first = read_manifest(tmp_path / "v1")
    assert (first.version, first.published) == (1, "2026-09-15T09:00:00+02:00")
    with pytest.raises(ValueError, match="counts from 1"):
        Manifest("a", "b", None, 0, "r", published=first.published, code={}, plan={}, ledger={})
    assert check_hashes(tmp_path / "v1") == []
