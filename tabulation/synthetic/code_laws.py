"""How often codes occur: like words in a text, the first often, the last seldom, and not everywhere alike."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from tabulation.synthetic.variables import Integers, Variable

FALL = 1.1
"""The exponent of Zipf's law: the n-th code occurs about n to the minus this as often as the first."""
SEXES = re.compile(r"(fe)?males?|men|wom[ae]n|man|boys?|girls?", re.IGNORECASE)


def code_tables(variable: Variable, archetypes: int, random: np.random.Generator) -> Integers:
    """A table of equally likely codes for each archetype."""
    codes = len(variable.texts)
    entries = 16_384 if codes <= 200 else 65_536
    common = 1 / np.arange(1, codes + 1) ** FALL * np.exp(random.normal(0, 0.3, codes))
    spread = 0.45
    if codes == 2 and all(SEXES.fullmatch(label) for label in variable.labels):
        common, spread = np.ones(codes), 0.02
    shares = common * np.exp(random.normal(0, spread, (archetypes, codes)))
    return np.stack([table_of(part, entries) for part in shares])


def table_of(shares: npt.NDArray[np.float64], entries: int) -> Integers:
    """`entries` equally likely places in which each place has its share."""
    chances = (np.arange(entries) + 0.5) / entries
    found = np.searchsorted(np.cumsum(shares / shares.sum()), chances)
    return np.minimum(found, len(shares) - 1).astype(np.int32)
