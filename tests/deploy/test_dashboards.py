"""The Grafana dashboards: panels are whole, every metric exists."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.metrics import LABELS, check_expression
from tests.deploy.promql import read

FOLDER = Path(__file__).parents[2] / "deploy/grafana"
FILES = sorted(path.name for path in FOLDER.glob("*.json"))


def dashboard(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return content


def targets(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for panel in dashboard(name)["panels"]:
        for target in panel["targets"]:
            yield panel, target


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_what_grafana_imports(name: str) -> None:
    content = dashboard(name)
    assert content["uid"] == name.removesuffix(".json") and len(content["uid"]) <= 40
    assert content["title"] and "id" not in content, "an id is of one installation"
    assert isinstance(content["schemaVersion"], int) and content["schemaVersion"] >= 36
    assert set(content["time"]) == {"from", "to"}
    assert isinstance(content["annotations"]["list"], list)
    first, *others = content["templating"]["list"]
    assert (first["name"], first["type"]) == ("datasource", "datasource"), "others need it"
    assert first["query"] == _source(name)
    for variable in others:
        assert variable["type"] in ("query", "textbox"), variable
        if variable["type"] == "query":
            assert variable["datasource"] == {"type": _source(name), "uid": "${datasource}"}
            assert variable["refresh"] in (1, 2), "else it is never asked for"


@pytest.mark.parametrize("name", FILES)
def test_every_panel_has_what_grafana_draws_it_by(name: str) -> None:
    for panel in dashboard(name)["panels"]:
        title = panel["title"]
        assert isinstance(panel["id"], int) and panel["id"] > 0, title
        assert panel["type"] in ("stat", "timeseries", "table"), title
        assert set(panel["gridPos"]) == {"x", "y", "w", "h"}, title
        assert set(panel["fieldConfig"]) == {"defaults", "overrides"}, title
        assert isinstance(panel["options"], dict), title
        if panel["type"] == "stat":
            assert panel["options"]["reduceOptions"]["calcs"], title
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
        assert not steps or steps[0]["value"] is None, f"{title}: the first colour has no value"
        names = [target["refId"] for target in panel["targets"]]
        assert names == [chr(ord("A") + place) for place in range(len(names))], title
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"], title
            if "prometheus" in name:
                assert target["expr"] and (target.get("range") or target.get("instant")), title
            else:
                kind = "time_series" if panel["type"] == "timeseries" else "table"
                assert target["rawSql"] and target["format"] == kind, title
                assert target["rawQuery"] is True, f"{title}: else Grafana builds its own"


def _source(name: str) -> str:
    return "prometheus" if "prometheus" in name else "grafana-postgresql-datasource"


@pytest.mark.parametrize("name", FILES)
def test_panels_are_whole_and_do_not_overlap(name: str) -> None:
    content = dashboard(name)
    kind = _source(name)
    taken: set[tuple[int, int]] = set()
    for panel in content["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        assert panel["datasource"] == {"type": kind, "uid": "${datasource}"}
        assert panel["title"] and panel["targets"]
    ids = [panel["id"] for panel in content["panels"]]
    assert len(ids) == len(set(ids))
    known = {variable["name"] for variable in content["templating"]["list"]}
    used = set(re.findall(r"\$\{?(?!__)(\w+)", json.dumps(content)))
    assert used <= known, used - known


def test_every_metric_exists() -> None:
    found = list(targets("laneway-prometheus.json"))
    assert len(found) > 20
    for panel, target in found:
        check_expression(target["expr"])
        expression = read(target["expr"])
        drawn = expression.grouped or set().union(*map(LABELS.__getitem__, expression.metrics))
        named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert named <= drawn, f"{panel['title']}: no label {named - drawn}"


def test_the_variables_ask_for_a_label_that_exists() -> None:
    for variable in dashboard("laneway-prometheus.json")["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            assert asked and asked[2] in LABELS[asked[1]], variable["query"]


def test_what_is_not_counted_is_not_shown_as_zero() -> None:
    """Ends are counted from the history: without all of it their rate is not zero but unknown."""
    for panel, target in targets("laneway-prometheus.json"):
        if panel["type"] == "stat" and "laneway_ended_total" in target["expr"]:
            assert target["expr"].endswith("and on () (min(laneway_minutes_exact) == 1)")
            assert panel["fieldConfig"]["defaults"]["noValue"] == "not counted"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_reads_every_expression(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{place}", "expr": runnable(target["expr"])}
        for place, (_, target) in enumerate(targets("laneway-prometheus.json"))
    ]
    file = tmp_path / "panels.json"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0 and f"{len(rules)} rules found" in done.stdout, done.stderr


def runnable(expression: str) -> str:
    """As Grafana sends it: with its variables replaced."""
    return expression.replace("$queue", ".*").replace("$__rate_interval", "5m")
