"""Names for confidential files: a private file says where they are, and everything else knows the name alone.

`<private>/datasets/NAME.json` maps entities to places. It is written by `margrave dataset`, read inside the
confidential step only, and refused where others could read it. `{edition}` in a place stands for the edition that is
measured.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flows.ledger.errors import HERE
from flows.terminal import UserError
from release_specs.diagnostics import did_you_mean

if TYPE_CHECKING:
    from release_specs.spec import ReleaseSpec

DATASETS, EDITION = "datasets", "{edition}"
_NAME = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)


def write_dataset(private: Path, name: str, places: Mapping[str, str]) -> None:
    """Keeps where the files of a dataset are, for their owner alone; what was kept under the name is replaced."""
    folder = private / DATASETS
    try:
        for one in (private, folder):
            one.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = folder / f".{name}.{os.getpid()}"
        path = _file_of(private, name)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({entity: absolute(place) for entity, place in places.items()}, file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as fault:
        raise UserError(f"the private folder {folder} cannot be written: {fault.strerror}") from None


def entities_of(private: Path, name: str) -> tuple[str, ...]:
    """The entities whose files a dataset names."""
    return tuple(_read(private, name))


def place_in(private: Path, name: str, entity: str, *, edition: str | None) -> str:
    """Where the file of an entity is, for the confidential step alone."""
    places = _read(private, name)
    if entity not in places:
        raise UserError(
            f"the dataset '{name}' names no file for '{entity}' (it has {', '.join(places)}); "
            f"add it with: margrave dataset {name} {entity}=PATH ...{HERE}"
        )
    if EDITION in places[entity] and edition is None:
        raise UserError(f"the dataset '{name}' has a file for each edition, and no edition is named; add --edition")
    return places[entity].replace(EDITION, edition or "")


def with_files(spec: ReleaseSpec) -> list[str]:
    """The entities that are read from a file, not built from other rows."""
    return [name for name, entity in spec.microdata.items() if entity.built_from is None]


def require_files(spec: ReleaseSpec, places: Mapping[str, str]) -> None:
    """Raises `UserError` unless every entity of a spec, and nothing else, is given a file that can be opened."""
    wanted = with_files(spec)
    for name, place in places.items():
        if name not in spec.microdata:
            raise UserError(f"--data {name}: '{name}' is not an entity of the spec; {did_you_mean(name, wanted)}")
        if name not in wanted:
            source = spec.microdata[name].built_from
            raise UserError(f"--data {name}: '{name}' are built from '{source}' and have no file; leave it out")
        if "://" not in place and (fault := _unreadable(Path(place))):
            raise UserError(f"--data {name}: {place} {fault}. Nothing was reserved or charged")
    if missing := [name for name in wanted if name not in places]:
        named = " ".join(f"--data {name}=PATH" for name in missing)
        raise UserError(f"no file is given for {', '.join(missing)}; add {named}. Nothing was reserved or charged")


def _unreadable(path: Path) -> str:
    """What is wrong with a path, without opening it."""
    try:
        if not path.exists():
            return "is not there; mend the path"
    except OSError as fault:
        return f"cannot be looked at: {fault.strerror}; mend the path"
    needed = os.R_OK | os.X_OK if path.is_dir() else os.R_OK
    return "" if os.access(path, needed) else "may not be read by you; ask its owner for permission"


def absolute(place: str) -> str:
    """A place that means the same from every folder."""
    return place if "://" in place else str(Path(place).resolve())


def keyed_names(places: Mapping[str, str], key: bytes) -> list[bytes]:
    """What the ledger may keep of the names of confidential files: an HMAC of each. Who connects does not matter."""
    return [hmac.digest(key, f"place\0{_bare(place)}".encode(), "sha256") for place in places.values()]


def _bare(place: str) -> str:
    """A place without user, password and options."""
    if "://" not in place:
        return place
    parts = urlsplit(place)
    return f"{parts.hostname or ''}:{parts.port or ''}{parts.path}#{parts.fragment}"


def _file_of(private: Path, name: str) -> Path:
    if _NAME.fullmatch(name) is None:
        raise UserError(f"'{name}' cannot name a dataset; begin with a letter and use letters, digits, - and _")
    return private / DATASETS / f"{name}.json"


def _read(private: Path, name: str) -> dict[str, str]:
    path = _file_of(private, name)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise UserError(
            f"there is no dataset '{name}' beside this ledger; "
            f"name its files with: margrave dataset {name} ENTITY=PATH{HERE}"
        ) from None
    except OSError as fault:
        raise UserError(f"{path} cannot be read: {fault.strerror}") from None
    with os.fdopen(handle, encoding="utf-8") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise UserError(f"{path} must belong to you and be closed to others; mend it with: chmod 600 {path}")
        return _parsed(file.read(), path)


def _parsed(text: str, path: Path) -> dict[str, str]:
    """What the file says; never a word of it in an error."""
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict) or not all(isinstance(place, str) for place in data.values()):
        raise UserError(f"{path} is not what 'margrave dataset' wrote; write it again")
    return data
