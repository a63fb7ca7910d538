"""What the tests of several files of the room share."""

import pytest

from mechanisms.accounting import composition


@pytest.fixture
def on_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lattice is bearable, and the grid is coarse enough to be quick."""
    monkeypatch.setattr(composition, "LATTICE_POINTS", 1)
    monkeypatch.setattr(composition, "GRID_POINTS", 1 << 15)
