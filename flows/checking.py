"""The verbs of whoever doubts a release: `margrave verify` and `margrave replay`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from flows.terminal import NOT_SO, OK, UserError, say
from flows.verbs import Verbs, add_verb
from flows.workplace import LEDGER_VARIABLE

if TYPE_CHECKING:
    from flows.ledger.ledger import Ledger
    from mechanisms.charge import Charge
    from reporting.check_release import Check
    from reporting.manifest import Manifest


def add_checking_verbs(verbs: Verbs) -> None:
    """The verbs that re-check a finished release."""
    verify = add_verb(
        verbs,
        "verify",
        _verify,
        help="check a published release again: hashes, every promise of its tables, its charges",
        description="Reads a release folder with independent code: hashes and signature, sums across levels and\n"
        "tables, signs, whole numbers, zeros, exact totals, rules, and the charges, recomputed from the measurement\n"
        "files. With a ledger the charges must also be those that were paid, and the anchor must lie on its chain.",
        example="margrave verify releases/harbour-2025 --ledger office.ledger",
    )
    verify.add_argument("release", metavar="RELEASE", type=Path, help="the folder of a release")
    verify.add_argument("--ledger", metavar="URL", help="the ledger that paid for it")
    verify.add_argument("--json", action="store_true", help="answer in JSON")
    replay = add_verb(
        verbs,
        "replay",
        _replay,
        help="rebuild every table of a release from its measurements",
        description="Makes all tables once more from the published measurements and the spec that are in the folder,\n"
        "and compares them byte for byte. No microdata are needed.",
        example="margrave replay releases/harbour-2025",
    )
    replay.add_argument("release", metavar="RELEASE", type=Path, help="the folder of a release")
    replay.add_argument("--json", action="store_true", help="answer in JSON")


def _verify(chosen: argparse.Namespace) -> int:
    from flows.ledger.ledger import Ledger

    _require_release(chosen.release)
    url = chosen.ledger or os.environ.get(LEDGER_VARIABLE)
    return _answer(chosen, list(checks_of(chosen.release, Ledger.open(url) if url else None)))


def checks_of(folder: Path, ledger: Ledger | None) -> Iterator[Check]:
    """Every check of a release, those against its ledger where there is one."""
    from reporting.check_release import check_release
    from reporting.errors import ReleaseFault
    from reporting.manifest import read_manifest

    yield from check_release(folder)
    try:
        manifest = read_manifest(folder)
    except ReleaseFault:
        return  # said already
    yield _signature(manifest, ledger)
    charges = list(_charges(folder))
    yield _prices(manifest, charges)
    if ledger is not None:
        yield from _against(ledger, folder, manifest, charges)


def _signature(manifest: Manifest, ledger: Ledger | None) -> Check:
    from flows.ledger.keys import holds
    from reporting.check_release import Check

    found = manifest.signature or {}
    key, signature = str(found.get("key", "")), str(found.get("signature", ""))
    if not holds(key, signature, manifest.to_be_signed()):
        return Check("signature", ok=False, detail="the manifest is not signed by the key it names")
    if ledger is not None and key != ledger.books().office_key:
        return Check("signature", ok=False, detail="the key is not the office's of this ledger")
    return Check("signature", ok=True, detail=f"of {found.get('office')}, key {key[:16]}")


def _charges(folder: Path) -> Iterator[Charge]:
    """The charges, as the measurement files tell them."""
    from mechanisms.catalogue import read_charge
    from release_specs.measured import tallies_of_edition
    from reporting.errors import ReleaseFault
    from reporting.manifest import read_manifest
    from reporting.measurement_files import read_measurements
    from reporting.spec_files import FOLDER, load_shipped

    try:
        loaded = load_shipped(folder, read_manifest(folder).edition)
        stored = read_measurements(folder, tallies_of_edition(loaded, folder / FOLDER))
        for one in stored.values():
            if not one.is_exact:
                yield read_charge(dict(one.described["charge"]))
    except (ReleaseFault, ValueError, KeyError, TypeError):
        return  # an unreadable folder was reported by the other checks; a missing charge shows in the price


def _prices(manifest: Manifest, charges: list[Charge]) -> Check:
    from flows.ledger.errors import Refused
    from flows.ledger.spending import price_of
    from reporting.check_release import Check

    try:
        price = price_of(charges, str(manifest.plan["currency"]))
        stated = Fraction(str(manifest.plan["price"]))
    except (Refused, KeyError, ValueError):
        return Check("price", ok=False, detail="the charges of the measurement files have no price as stated")
    detail = f"{len(charges)} charges come to {manifest.plan['currency']} {price}, stated {stated}"
    return Check("price", price == stated and bool(charges), detail)


def _against(ledger: Ledger, folder: Path, manifest: Manifest, charges: list[Charge]) -> Iterator[Check]:
    """What only the ledger can tell: that this was paid for, and published as it stands."""
    from flows.ledger.anchor import Anchor
    from flows.ledger.chain import canonical
    from flows.ledger.verifying import verify_ledger
    from flows.stored import hash_of
    from reporting.check_release import Check
    from reporting.manifest import MANIFEST

    run = ledger.books().runs.get(manifest.run)
    if run is None:
        yield Check("ledger", ok=False, detail=f"run {manifest.run} is not in this ledger")
        return
    paid = sorted(canonical(one) for one in run.charges)
    yield Check("charges", paid == sorted(canonical(one.as_data()) for one in charges), "as paid, by the ledger")
    known = hash_of(folder / MANIFEST) in run.versions
    yield Check(
        "publication", known, "the ledger knows this manifest" if known else "the ledger knows another manifest"
    )
    try:
        anchor = Anchor.from_data(dict(manifest.ledger["anchor"]))
    except (ValueError, KeyError, TypeError):
        yield Check("anchor", ok=False, detail="the manifest holds no anchor")
        return
    for one in verify_ledger(ledger.database, [anchor]):
        yield Check(f"ledger {one.name}", one.ok, one.detail)


def _replay(chosen: argparse.Namespace) -> int:
    from flows.planning.noise import noise_of
    from reporting.check_release import Check
    from reporting.errors import ReleaseFault
    from reporting.replay import replay

    _require_release(chosen.release)
    with TemporaryDirectory(prefix="margrave-replay-") as folder:
        try:
            different = replay(chosen.release, Path(folder), noise_of=noise_of)
        except ReleaseFault as fault:
            return _answer(chosen, [Check("replay", ok=False, detail=str(fault))])
    detail = f"differ: {', '.join(different)}" if different else "every table is rebuilt byte for byte"
    return _answer(chosen, [Check("replay", not different, detail)])


def _require_release(folder: Path) -> None:
    from reporting.manifest import MANIFEST

    if not (folder / MANIFEST).is_file():
        raise UserError(f"{folder} is no release: it has no {MANIFEST}; name the folder that 'margrave run' printed")


def _answer(chosen: argparse.Namespace, checks: list[Any]) -> int:
    ok = all(one.ok for one in checks)
    if chosen.json:
        listed = [{"name": one.name, "ok": one.ok, "detail": one.detail} for one in checks]
        say(json.dumps({"ok": ok, "checks": listed}, indent=2))
    else:
        for one in checks:
            say(f"{'ok    ' if one.ok else 'FAILED'}  {one.name}: {one.detail or 'holds'}")
    return OK if ok else NOT_SO
