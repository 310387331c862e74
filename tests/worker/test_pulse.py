"""How long the pulse waits for an answer."""

import pytest

from penstock.worker.pulse_line import CLOSING
from penstock.worker.pulse_process import patience


@pytest.mark.parametrize("lease", [3.0, 4.0, 5.0, 10.0, 60.0, 3600.0])
def test_a_lease_outlives_a_call_that_is_never_answered(lease: float) -> None:
    """With a third of it left to connect anew."""
    assert patience(lease, connected=True) + CLOSING <= lease * 2 / 3


@pytest.mark.parametrize("lease", [1.0, 4.0, 60.0])
def test_a_new_connection_gets_more_time(lease: float) -> None:
    assert patience(lease, connected=False) >= max(3.0, patience(lease, connected=True))
