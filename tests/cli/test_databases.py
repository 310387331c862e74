"""Commands that look at several databases: one picture, and one that is away does not spoil it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from laneway import Queue
from tests.cli.commands import Cli

AWAY = "eu-3=postgresql://127.0.0.1:1/nothing"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[dict[str, Queue]]:
    found = {name: Queue(f"sqlite:///{tmp_path}/{name}.db") for name in ("eu-1", "eu-2")}
    for number, queue in enumerate(found.values(), 1):
        queue.install()
        queue.publish_many(range(number), channel=f"tenant-{number}")
    yield found
    for queue in found.values():
        queue.close()


@pytest.fixture
def cli(pair: dict[str, Queue]) -> Cli:
    return Cli(pair["eu-1"]._address.url, "laneway")


def urls(pair: dict[str, Queue]) -> list[str]:
    return [word for name, q in pair.items() for word in ("--url", f"{name}={q._address.url}")]


def test_stats_and_channels_say_which_database(cli: Cli, pair: dict[str, Queue]) -> None:
    found = cli.json("stats", *urls(pair))
    assert [(n["database"], n["waiting"]) for n in found] == [("eu-1", 1), ("eu-2", 2)]
    lines = cli.run("stats", *urls(pair)).stdout.splitlines()
    assert lines[0].startswith("database\tqueue\t") and lines[2].startswith("eu-2\tdefault\t2")
    found = cli.json("channels", *urls(pair))
    assert [(n["database"], n["channel"]) for n in found] == [
        ("eu-2", "tenant-2"),
        ("eu-1", "tenant-1"),
    ]
    assert (
        "position in one database"
        in cli.run("channels", *urls(pair), "--after", "x", code=2).stderr
    )
    assert cli.json("workers", *urls(pair)) == []


@pytest.mark.parametrize("command", ["stats", "channels", "workers", "top --once"])
def test_one_that_is_away_is_named_and_the_others_are_shown(
    cli: Cli, pair: dict[str, Queue], command: str
) -> None:
    done = cli.run(*command.split(), *urls(pair), "--url", AWAY, "--json", code=1)
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["database"] for one in shown} == (
        {"eu-1", "eu-2"} if command != "workers" else set()
    )
    assert "eu-3 is away" in done.stderr and "eu-1 is away" not in done.stderr


def test_top_is_one_picture(cli: Cli, pair: dict[str, Queue]) -> None:
    text = cli.run("top", "--once", *urls(pair)).stdout
    assert "eu-1" in text and "eu-2" in text and text.count("published/s") == 1
    assert text.index("tenant-2") < text.index("tenant-1"), "the fullest of all first"


def test_doctor_checks_each(cli: Cli, pair: dict[str, Queue]) -> None:
    done = cli.run("doctor", *urls(pair), "--url", AWAY, "--json", code=1)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    failed = {one["database"] for one in found if one["level"] == "fail"}
    assert failed == {"eu-3"}
    assert {one["database"] for one in found if one["check"] == "schema"} == {"eu-1", "eu-2"}
    assert "eu-3: connection" in cli.run("doctor", *urls(pair), "--url", AWAY, code=1).stdout


def test_the_exporter_labels_each(cli: Cli, pair: dict[str, Queue]) -> None:
    done = cli.run("exporter", "--once", *urls(pair), "--url", AWAY, "--timeout", "2", code=1)
    assert 'laneway_up{database="eu-1"} 1.0' in done.stdout
    assert 'laneway_up{database="eu-3"} 0.0' in done.stdout
    assert 'laneway_messages{database="eu-2",queue="default",state="waiting"} 2.0' in done.stdout
    assert done.stdout.count("# TYPE laneway_messages ") == 1
    assert "eu-3: " in done.stderr and "eu-2: " not in done.stderr


def test_names_come_from_the_file(
    cli: Cli, pair: dict[str, Queue], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f'{name} = "{queue._address.url}"' for name, queue in pair.items()]
    (tmp_path / "laneway.toml").write_text("\n".join(["[databases]", *lines]))
    monkeypatch.chdir(tmp_path)
    none = Cli("", "laneway")
    assert [n["database"] for n in none.json("stats")] == ["eu-1", "eu-2"]
    (one,) = none.json("stats", "--url", "eu-2")
    assert one["waiting"] == 2 and "database" not in one
    assert (
        "which database? Pass --url with one of eu-1, eu-2"
        in none.run("publish", "1", code=2).stderr
    )
    none.run("publish", "1", "--url", "eu-1")
    assert [n["waiting"] for n in none.json("stats")] == [2, 2]


def test_two_of_one_name_are_refused(cli: Cli) -> None:
    found = cli.run("stats", "--url", f"a={cli.url}", "--url", f"a={cli.url}", code=2)
    assert "two databases have one name" in found.stderr


def test_a_worker_for_all_of_them(
    cli: Cli, pair: dict[str, Queue], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "many_jobs.py").write_text(
        "from laneway import Tasks\n"
        "tasks = Tasks()\n"
        "@tasks.task\n"
        "def note(number: int) -> None: ...\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    begun = {name: queue.history_since().position for name, queue in pair.items()}
    for queue in pair.values():
        queue.publish(1, kind="note")
    checked: Any = cli.json("worker", "many_jobs", "--check", *urls(pair))
    assert checked[0]["problems"] == []
    cli.run("worker", "many_jobs", "--until-empty", *urls(pair))
    for name, queue in pair.items():
        ended = queue.history_since(begun[name]).entries
        assert [e.kind for e in ended if e.outcome == "completed"] == ["note"]
