"""All neighbours on small domains, through the product itself: no unit moves a count further than the law declares."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tabulation import small_towns
from tests.tabulation.many_towns import Towns, furthest

CASES: dict[str, Callable[[], Towns]] = {
    "alone": small_towns.alone,
    "shared 1": lambda: small_towns.shared("at_most: {people: 1}"),
    "shared 2": lambda: small_towns.shared("at_most: {people: 2}"),
    "shared 2 first": lambda: small_towns.shared("at_most: {people: 2, keep_first: {x: b}}"),
    "shared nameless": lambda: small_towns.shared("at_most: {people: 2}", nameless=True),
    "homes 1": lambda: small_towns.homes("at_most: {people: 1}"),
    "homes 2": lambda: small_towns.homes("at_most: {people: 2}"),
    "homes 2 first": lambda: small_towns.homes("at_most: {people: 2, keep_first: {x: b, kind: F}}"),
    "singles": lambda: small_towns.homes_with_singles("at_most: {people: 2}"),
    "singles 1 first": lambda: small_towns.homes_with_singles("at_most: {people: 1, keep_first: {x: b}}"),
    "nameless": lambda: small_towns.homes_without_ids("at_most: {people: 2}"),
    "mothers 1": lambda: small_towns.mothers(1),
    "mothers 2": lambda: small_towns.mothers(2),
    "births 1": lambda: small_towns.births(1),
    "births 2": lambda: small_towns.births(2),
}
