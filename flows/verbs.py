"""How a verb of the `margrave` command is added: its help teaches and ends with an example."""

from __future__ import annotations

import argparse
from typing import Any

Verbs = Any
"""What argparse calls its sub-parsers; it has no public name."""


def add_verb(verbs: Verbs, name: str, act: Any, **words: str) -> argparse.ArgumentParser:
    """A verb that runs `act`; `words` are its help, description and example."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=words["help"],
        description=words["description"],
        epilog=f"example:  {words['example']}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(act=act)
    return parser
