"""What no single section can know: names, shares, caps, agreement, and what is legal but unwise.

Each check is one function, named as the rule it enforces, that looks at the whole spec and yields findings. `needs`
names the sections it reads: a check whose section could not be read is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from release_specs.diagnostics import Finding
from release_specs.domain import Domain
from release_specs.public_files import PublicFiles
from release_specs.spec import ReleaseSpec


def find(spec: ReleaseSpec, domain: Domain, files: PublicFiles, sections: frozenset[str]) -> list[Finding]:
    return []
