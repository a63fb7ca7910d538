"""What can go wrong after the noise.

EstimationError
  Infeasible   no table obeys everything that is exact, impossible or a rule
  Unsettled    a family of areas whose problem neither solver could solve
  TooLarge     a release that this machine cannot hold
"""

from __future__ import annotations


class EstimationError(Exception):
    """Tables could not be made from the measurements. Nothing was published; the measurements are kept."""


class Infeasible(EstimationError):
    """No table obeys everything that is exact, impossible or a rule."""


class Unsettled(EstimationError):
    """A family of areas whose problem neither solver could solve."""


class TooLarge(EstimationError):
    """A release that this machine cannot hold."""
