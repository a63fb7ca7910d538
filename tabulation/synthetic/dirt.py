"""Dirt for rehearsals: some cells missing, some outside the domain, some oddly spelled. Keys stay clean."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tabulation.synthetic.arrays import scale_values
from tabulation.synthetic.variables import Bools, Variable

STRANGE = ("?", "n/k", "#REF!", "-", "unknown ", "ÿ")
MOST_RESPELLED = 50


def soil(variable: Variable, array: pa.Array, share: Fraction, random: np.random.Generator) -> pa.Array:
    """The array with this share of its cells spoilt."""
    chosen = random.random(len(array)) < float(share)
    if pa.types.is_dictionary(array.type):
        return _soil_text(variable, array, chosen, random)
    kind = random.integers(0, 3, len(array))
    replaced = pc.if_else(pa.array(chosen & (kind > 0)), _outside(variable, array, random), array)
    return pc.if_else(pa.array(chosen & (kind == 0)), pa.scalar(None, array.type), replaced)


def odd_spellings(texts: list[str]) -> list[str]:
    """Spellings that are none of `texts`, though some come near."""
    near = [odd for text in texts[:MOST_RESPELLED] for odd in _near(text)]
    return [odd for odd in dict.fromkeys((*STRANGE, *near)) if odd and odd not in texts]


def _near(text: str) -> tuple[str, ...]:
    return (f" {text}", f"{text} ", f"0{text}", f"{text}.0", text.swapcase(), text.lstrip("0"), f"{text}{text}9")


def _soil_text(variable: Variable, array: pa.Array, chosen: Bools, random: np.random.Generator) -> pa.Array:
    words = array.dictionary.to_pylist()
    legal = [*words, *variable.texts, *(variable.column.read_as or ())]
    odd = [word for word in odd_spellings(words) if word not in legal]
    wanted = random.integers(0, len(odd) + max(len(odd) // 3, 1), len(array)).astype(np.int32)
    index = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    index = np.where(chosen, np.where(wanted < len(odd), wanted + len(words), -1), index).astype(np.int32)
    dictionary = pa.array([*words, *odd], type=pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(index, mask=index < 0), dictionary)


def _outside(variable: Variable, array: pa.Array, random: np.random.Generator) -> pa.Array:
    """Values beyond either end of the valid range."""
    first, last = variable.span
    beyond = random.integers(1, 1000, len(array))
    places = np.where(random.random(len(array)) < 0.7, last + beyond, first - beyond)
    return pa.array(scale_values(variable, places)).cast(array.type)
