"""The files that start Laneway: every command and option in them exists, every probe answers."""

import configparser
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from laneway.cli.app import app
from tests.deploy.metrics import check_expression

DEPLOY = Path(__file__).parents[2] / "deploy"
PROBES = {"/livez", "/readyz"}


def _lists(value: Any) -> Iterator[list[str]]:
    """Every command in a document."""
    if isinstance(value, dict):
        for name, inside in value.items():
            if name == "command" and isinstance(inside, list):
                yield inside
            yield from _lists(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _lists(inside)


def commands() -> Iterator[tuple[str, list[str]]]:
    for file in sorted(DEPLOY.rglob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            yield from ((file.name, words) for words in _lists(document))
    for file in sorted((DEPLOY / "systemd").iterdir()):
        unit = configparser.ConfigParser(interpolation=None, strict=False)
        unit.read_string(file.read_text())
        yield file.name, shlex.split(unit["Service"]["ExecStart"])
    text = (DEPLOY / "container" / "Dockerfile").read_text()
    for found in re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE):
        yield "Dockerfile", yaml.safe_load(found)


@pytest.mark.parametrize(("file", "words"), list(commands()))
def test_every_command_and_option_exists(file: str, words: list[str]) -> None:
    program, name, *rest = words
    assert program.endswith("laneway")
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= known


def test_there_is_a_file_for_each_part() -> None:
    found = {(file, words[1]) for file, words in commands()}
    parts = {"worker", "dashboard", "exporter"}
    assert {("Dockerfile", part) for part in parts} <= found
    units = {file for file, _ in found if file.endswith(".service")}
    assert units == {
        "laneway-worker@.service",
        "laneway-dashboard.service",
        "laneway-exporter.service",
    }
    assert parts | {"install"} <= {name for file, name in found if file.endswith(".yaml")}


def test_containers_of_kubernetes() -> None:
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document["kind"] == "Deployment":
                _check_deployment(document)
            if document["kind"] == "ScaledObject":
                (trigger,) = document["spec"]["triggers"]
                check_expression(trigger["metadata"]["query"])


def _check_deployment(document: dict[str, Any]) -> None:
    template = document["spec"]["template"]
    labels = document["spec"]["selector"]["matchLabels"]
    assert labels.items() <= template["metadata"]["labels"].items()
    assert template["spec"]["securityContext"]["runAsNonRoot"]
    (container,) = template["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    probes = [probe for name, probe in container.items() if name.endswith("Probe")]
    assert probes
    for probe in probes:
        ((kind, target),) = ((k, v) for k, v in probe.items() if k in ("httpGet", "tcpSocket"))
        assert target["port"] in ports
        assert kind == "tcpSocket" or target["path"] in PROBES


def test_compose_names_targets_that_exist() -> None:
    compose = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
    text = (DEPLOY / "container" / "Dockerfile").read_text()
    targets = set(re.findall(r"^FROM \S+ AS (\w+)$", text, re.MULTILINE))
    named = {s["build"]["target"] for s in compose["services"].values() if "build" in s}
    assert named == {"base", "worker", "exporter", "dashboard"}
    assert named <= targets
