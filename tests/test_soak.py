"""A soak of a few seconds loses nothing; its verdict sees what is not flat, and what is missing."""

import pytest

from benchmarks.soak.run import run
from benchmarks.soak.sampling import Account
from benchmarks.soak.terms import Terms
from benchmarks.soak.verdict import MB, Line, flat, losses
from laneway.dev.embedded import EmbeddedPostgres

STEADY = Line(0, False, 200, 200, 5, 0.02, 10 * MB, 10 * MB, 5 * MB, 10_000, 50 * MB)
LINES = 24


def course(**rising: float) -> list[Line]:
    """Lines that rise to so many times what they were, an old snapshot in the middle third."""
    lines = []
    for number in range(LINES):
        grown = {
            name: getattr(STEADY, name) * (1 + (factor - 1) * number / LINES)
            for name, factor in rising.items()
        }
        held = LINES / 3 <= number < LINES * 2 / 3
        lines.append(STEADY._replace(second=number, snapshot=held, **grown))
    return lines


@pytest.mark.repeats("a short run of make soak")
def test_nothing_is_lost_and_old_history_goes(server: EmbeddedPostgres) -> None:
    """Seconds say nothing about flat lines: `make soak` does."""
    told: list[Line] = []
    terms = Terms(minutes=0.15, rate=60, channels=300, workers=1, interval=1.0)
    result = run(server.create_database("soak"), terms, told.append)
    assert result.losses == []
    assert result.published > 0 and result.lines == told and told


def test_flat_lines_are_flat() -> None:
    assert flat(course()) == []
    assert flat(course(memory=1.1, dead_rows=1.2, history=50)) == []


@pytest.mark.parametrize(
    ("name", "factor"),
    [("memory", 3), ("tables", 4), ("indexes", 4), ("dead_rows", 20), ("late", 50)],
)
def test_what_rises_is_found(name: str, factor: float) -> None:
    found = flat(course(**{name: factor}))
    assert found and name in " ".join(found)


def test_an_account_that_does_not_add_up_is_found() -> None:
    good = Account(completed=10, different=10, waiting=0, dead=0)
    assert losses(good, 10, 0) == []
    for account, published, old, word in (
        (good, 11, 0, "lost"),
        (good._replace(completed=11), 10, 0, "twice"),
        (good._replace(waiting=1, different=9, completed=9), 10, 0, "wait"),
        (good._replace(dead=1, different=9, completed=9), 10, 0, "given up"),
        (good, 10, 2, "retention"),
    ):
        assert any(word in text for text in losses(account, published, old)), word
