"""Parts of the page say the same as the tables: cards, plots, legends, the order of crashes."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway.lake.folder import Folder
from laneway.lake.report.page.facts import Facts
from laneway.lake.report.page.failures import crashes, letters
from laneway.lake.report.page.load import flow, tiles
from laneway.lake.report.page.plots import Series, timeline
from laneway.lake.report.page.verdict import judge
from laneway.lake.report.tables import Objective
from tests.report.history import HOUR, NOW, History, MadeUpFigures


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path))


def facts_of(folder: Folder, history: History, **tables: list[dict[str, Any]]) -> Facts:
    made_up = MadeUpFigures(history)
    facts = Facts(folder, Objective(), NOW)
    names = ("recent", "hours", "outlook", "slo", "signatures", "crashes", "redrive", "normal")
    facts.given({name: made_up.rows(name) for name in names} | {"repeats": []} | tables)
    return facts


def failed(count: int) -> History:
    history = History()
    history.add_steady(0.5, 570)
    history.add_steady(0.5, 2 * count, outcome="failed")
    return history


def test_a_card_counts_the_dead_letters_of_the_table(folder: Folder) -> None:
    facts = facts_of(folder, failed(13))
    card = tiles(facts, judge(facts))
    assert "<dt>dead letters</dt><dd>13 (in the queue now: 0)</dd>" in card


def test_the_card_of_the_queue_in_a_red_headline_is_red(folder: Folder) -> None:
    history = History()
    history.add_steady(0.5, 200, outcome="failed")
    history.add_steady(0.5, 200, queue="pdf")
    facts = facts_of(folder, history)
    verdict = judge(facts)
    assert verdict.level == "bad" and "Queue mail" in verdict.sentences[1]
    card = tiles(facts, verdict)
    assert '<div class="tile bad"><h3>mail</h3>' in card
    assert '<div class="tile good"><h3>pdf</h3>' in card


def test_failures_are_drawn_at_their_number(folder: Folder) -> None:
    """54 failed beside 285 that were completed: not at 339."""
    hours = [
        {"queue": "mail", "hour": NOW.replace(minute=0) - n * HOUR, "started": 339,
         "completed": 285, "failing": 54}
        for n in range(2)
    ]  # fmt: skip
    drawn = flow(facts_of(folder, failed(1), hours=hours))
    heights = {
        tone: float(path.split(",")[1].split("L")[0])
        for tone, path in re.findall(r'<path class="line-(good|bad)" d="([^"]+)"', drawn)
    }
    bottom, top = 146.0, 12.0
    assert heights["bad"] == pytest.approx(bottom - 54 / 400 * (bottom - top), abs=0.1)
    assert heights["good"] == pytest.approx(bottom - 285 / 400 * (bottom - top), abs=0.1)


def test_a_legend_names_only_lines_that_are_drawn() -> None:
    times = [NOW - n * HOUR for n in range(3)]
    share = Series("top share", [0.5, 0.4, None], "two")
    drawn = timeline("shares", times, [share, Series("Jain's index", [None] * 3, "good")])
    assert "Jain" not in drawn
    both = timeline("shares", times, [share, Series("Jain's index", [None, 1.0, None], "good")])
    assert "Jain" in both and "top share" in both


def test_the_latest_of_equal_crashes_comes_first(folder: Folder) -> None:
    history = failed(1)
    for message, minutes in ((900, 50), (7, 10), (400, 30)):
        history.add(NOW - timedelta(minutes=minutes), "expired", message=message)
    history.add(NOW - timedelta(minutes=90), "expired", message=1)
    history.add(NOW - timedelta(minutes=80), "expired", message=1)
    shown = crashes(facts_of(folder, history))
    assert re.findall(r'<td class="n">(\d+)</td><td class="">mail', shown) == [
        "1", "7", "400", "900",
    ]  # fmt: skip


def test_an_error_of_the_code_is_to_be_mended_first(folder: Folder) -> None:
    row = {
        "queue": "mail", "kind": "send", "type": "ValueError", "frame": "", "text": "bad",
        "letters": 13,
        "oldest": NOW - 20 * HOUR, "redriven": 0, "recovered": 0, "died_again": 0, "discarded": 0,
        "last_at": NOW - 12 * HOUR, "completed_since": 200, "advice": "fix first",
    }  # fmt: skip
    shown = letters(facts_of(folder, failed(1), redrive=[row]))
    assert "the same code fails again: mend it, redrive one, then the others" in shown
