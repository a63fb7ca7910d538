"""The words of a deployments file.

```yaml
margrave: 1
deployments:
  births:                              # a name of your own: small letters, digits, - and _
    spec: births/births.yaml           # relative to this file, as every path here
    data: {births: register-births}    # entity: the name of a private reference, never a path
    ledger: postgresql://db.office/margrave
    engine: duckdb
    author: Omar Diaz                  # who wrote the spec, and may not approve it
    output: releases
    max_lateness: 6 hours
    notify:
      failure: [https://office.example/alarm, mail-duty --subject births]
      approval: mail-reviewers
      publication: https://office.example/news
```

Nothing confidential stands here: a reference is looked up inside the confidential step, in a private file.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import urlsplit

from release_specs.language.model import SpecModel, read_words
from release_specs.language.values import Text, choice, mistake, read_name, read_text, shape_of, typed

LOOPBACK = ("localhost", "127.0.0.1", "::1")
LEDGERS = ("sqlite", "postgresql", "postgres")
_UNITS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}


@dataclass(frozen=True, slots=True)
class Url:
    """An address that is told of an event."""

    address: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command that is run at an event, without a shell."""

    words: tuple[str, ...]


Hook = Url | Command


def read_reference(value: object) -> str:
    """The name of a private reference. What looks like a path or an address is refused, and not repeated."""
    text = read_text(value).strip()
    if re.search(r"[\\/~:]|\.(csv|tsv|txt|parquet|pq|gz|zip|db|duckdb)$", text, re.IGNORECASE):
        raise mistake(
            "bad-reference",
            "this looks like the place of a confidential file, which belongs in the private file of references only; "
            "give it a name there and write the name here",
        )
    if not re.fullmatch(r"[A-Za-z][\w.-]*", text, re.ASCII):
        raise mistake("bad-reference", f"'{text}' cannot name a reference; use letters, digits, - and _")
    return text


def _read_data(value: object) -> str | dict[str, str]:
    if not isinstance(value, dict):
        return read_reference(value)
    if not value:
        raise mistake("wrong-shape", "no entity is named; write data: {persons: NAME}")
    return {read_name(entity): read_reference(name) for entity, name in value.items()}


def _read_ledger(value: object) -> str:
    text = read_text(value).strip()
    if re.match(r"\w+:", text) is None:
        return text
    scheme = text.partition(":")[0]
    if scheme not in LEDGERS:
        raise mistake("bad-address", f"'{scheme}:' is no kind of ledger; write a file, or postgresql://host/name")
    if _split(text).password is not None:
        raise mistake(
            "secret-found", "the address holds a password; leave it out and give it to PostgreSQL in PGPASSFILE"
        )
    return text


def _read_lateness(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    text = read_text(value).strip()
    shape = re.fullmatch(r"(\d{1,3}) (minute|hour|day|week)s?", text, re.ASCII)
    if shape is None or int(shape[1]) == 0:
        raise mistake("bad-lateness", f"'{text}' is no length of time; write '90 minutes', '6 hours' or '2 days'")
    return timedelta(seconds=int(shape[1]) * _UNITS[shape[2]])


def _read_hooks(value: object) -> tuple[Hook, ...]:
    if isinstance(value, dict):
        raise mistake("wrong-shape", f"found {shape_of(value)}; write one command or address, or a [list, of, them]")
    return tuple(_hook(text.strip()) for text in read_words(value))


def _hook(text: str) -> Hook:
    if re.match(r"\w+://", text):
        return Url(_checked(text))
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        raise mistake("bad-hook", f"'{text}' has a quote that is never closed; add the missing quote") from None
    if not words:
        raise mistake("bad-hook", "the command is empty; write the program and its arguments, or delete the line")
    return Command(words)


def _checked(address: str) -> str:
    parts = _split(address)
    if parts.scheme not in ("https", "http"):
        raise mistake("bad-hook", f"'{parts.scheme}:' cannot be told; write an address that begins with https://")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise mistake("bad-hook", "what is sent to http:// can be read on its way; write https://")
    if parts.password is not None:
        raise mistake("secret-found", "the address holds a password; leave it out, or let a command send the message")
    return address


def _split(address: str) -> Any:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise mistake(
            "bad-address", "this is not an address; write https://host/path or postgresql://host/name"
        ) from None
    return parts


Hooks = Annotated[tuple[Hook, ...], *typed(_read_hooks, list)]


class Notify(SpecModel):
    """Who is told, and when. A hook is a command or an address; several stand in a list."""

    failure: Hooks = ()
    """When a run fails or is missed."""
    approval: Hooks = ()
    """When a run waits for approval."""
    publication: Hooks = ()
    """When a release is published."""


class Written(SpecModel):
    """One deployment as it is written."""

    spec: Text
    """The release spec, a file relative to this one."""
    data: Annotated[str | dict[str, str], *typed(_read_data, dict)]
    """`{ENTITY: NAME}`, the names of private references; one NAME alone where it holds every entity."""
    ledger: Annotated[str, *typed(_read_ledger, str)] | None = None
    """A file, or postgresql://host/name. Left out: as `margrave run` finds it."""
    engine: Annotated[str, *choice("duckdb", "spark")] = "duckdb"
    """What reads the confidential files: duckdb or spark."""
    author: Text | None = None
    """Who wrote the spec, by the ledger's name: that person's approval does not count. Needed unless `--solo`."""
    output: Text
    """The folder that releases are put in."""
    max_lateness: Annotated[timedelta, *typed(_read_lateness, str)] = timedelta(days=1)
    """How late a run may begin; later it is reported as missed."""
    notify: Notify = Notify()
    """Commands or addresses for `failure`, `approval` and `publication`."""
