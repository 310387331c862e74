"""Every mutant still is one: its patches apply. Some are hunted here, all by `make mutants`."""

import ast
import os
from pathlib import Path

import pytest

from tests.mutants.hunt import MUTANTS, hunt
from tests.mutants.mutant import Mutant, Patch, PatchDoesNotApply


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_patches_apply(mutant: Mutant) -> None:
    for file, text in mutant.files().items():
        if file.endswith(".py"):
            ast.parse(text)


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25


def test_a_patch_that_no_longer_applies_is_an_error(tmp_path: Path) -> None:
    gone = Mutant("gone", frozenset(), [Patch("plan.py", "what is not there", "")])
    with pytest.raises(PatchDoesNotApply, match=r"plan\.py"):
        gone.write(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    "LANEWAY_CHAOS_LONG" not in os.environ, reason="half a minute each: make chaos-faults"
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", ["SQLite: a claim takes no slot", "SQLite: settling is not fenced"]
)
def test_it_is_killed(name: str) -> None:
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == name)
    hunted = hunt(mutant, range(1, 6), seconds=6)
    assert hunted.killed, hunted.seen
