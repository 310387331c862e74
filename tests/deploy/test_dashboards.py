"""The Grafana dashboards: panels are whole, every metric exists."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.metrics import check_expression

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
def test_panels_are_whole_and_do_not_overlap(name: str) -> None:
    content = dashboard(name)
    kind = "prometheus" if "prometheus" in name else "grafana-postgresql-datasource"
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
    for _, target in found:
        check_expression(target["expr"])
