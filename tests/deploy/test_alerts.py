"""The alert rules: every metric exists, every alert has a runbook."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from laneway.exporter.counters import OUTCOMES
from tests.deploy.metrics import check_expression

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/prometheus"
PAGE = (ROOT / "docs/how-to/metrics.md").read_text()
RUNBOOK = "docs/how-to/metrics.md#"


def rules() -> list[dict[str, Any]]:
    content = yaml.safe_load((FOLDER / "alerts.yml").read_text())
    assert set(content) == {"groups"}
    return [rule for group in content["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_is_whole(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Laneway[A-Za-z]+", rule["alert"])
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook"}
    assert all(text.strip().endswith(".") for name, text in notes.items() if name != "runbook")
    check_expression(rule["expr"])
    for label in re.findall(r"\$labels\.(\w+)", notes["summary"]):
        assert label in ("queue", "kind", "state")


def test_each_has_its_part_of_the_page_and_each_part_its_alert() -> None:
    part = PAGE.partition("## The alerts")[2].partition("\n## ")[0]
    headings = re.findall(r"^### (\w+)$", part, re.MULTILINE)
    assert headings == [rule["alert"] for rule in rules()]
    assert [rule["annotations"]["runbook"] for rule in rules()] == [
        RUNBOOK + heading.lower() for heading in headings
    ]


def test_what_grows_old_is_an_alert_only_if_nothing_ends() -> None:
    """Limited work grows old on purpose."""
    for rule in rules():
        if "laneway_oldest_seconds >" in rule["expr"]:
            other = ("laneway_ended_total", "laneway_queue_workers", "laneway_worker_slots_used")
            assert any(name in rule["expr"] for name in other), rule["alert"]


def test_what_asks_for_completions_asks_whether_they_are_counted() -> None:
    """A history of failures alone has none: every attempt would seem to fail, or none to end."""
    for rule in rules():
        text = rule["expr"]
        if "completed" in text or "rate(laneway_ended_total[" in text:
            assert "on () (laneway_minutes_exact == 1)" in text, rule["alert"]


def test_outcomes_in_the_rules_exist() -> None:
    for rule in rules():
        for outcomes in re.findall(r'outcome=~?"([^"]+)"', rule["expr"]):
            assert set(outcomes.split("|")) <= set(OUTCOMES)


def test_the_rules_cases_name_known_alerts_and_metrics() -> None:
    content = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())
    known = {rule["alert"] for rule in rules()}
    for case in content["tests"]:
        assert {one["alertname"] for one in case["alert_rule_test"]} <= known
        for series in case["input_series"]:
            check_expression(series["series"])


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_takes_the_rules_and_their_cases() -> None:
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(["promtool", *words], cwd=FOLDER, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
