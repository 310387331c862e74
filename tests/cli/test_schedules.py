"""schedules and topics."""

from datetime import timedelta

import pytest

from laneway import Queue
from tests.cli.commands import Cli


@pytest.fixture
def schedule(queue: Queue) -> str:
    queue.schedule("nightly", {"pages": 3}, cron="0 3 * * *", zone="Europe/Zurich", kind="report")
    queue.schedule("ping", every=timedelta(minutes=90), queue="emails")
    return "nightly"


def test_list(cli: Cli, schedule: str) -> None:
    nightly, ping = cli.json("schedules")
    assert (nightly["name"], nightly["cron"], nightly["zone"]) == (
        *("nightly", "0 3 * * *", "Europe/Zurich"),
    )
    assert "payload" not in nightly and nightly["payload_size"] == len('{"pages":3}')
    assert (ping["queue"], ping["every"]) == ("emails", 5400.0)
    shown = cli.run("schedules", "list").stdout
    assert "default\tnightly\t0 3 * * *\tEurope/Zurich\tin " in shown and "every 1h30m" in shown
    assert [s["name"] for s in cli.json("schedules", "-q", "emails")] == ["ping"]


def test_pause_resume_and_run_now(cli: Cli, queue: Queue, schedule: str) -> None:
    (paused,) = cli.json("schedules", "pause", "nightly")
    assert paused["paused"] and queue.schedules.get("nightly").paused
    assert "\tpaused\t" in cli.run("schedules").stdout
    id = int(cli.run("schedules", "run", "nightly").stdout)
    (message,) = queue.claim()
    assert (message.id, message.kind, message.json()) == (id, "report", {"pages": 3})
    assert "runs next at" in cli.run("schedules", "resume", "nightly").stderr
    assert not queue.schedules.get("nightly").paused
    (published,) = cli.json("schedules", "run", "ping", "--queue", "emails")
    assert published["status"] == "published"


def test_remove_asks(cli: Cli, queue: Queue, schedule: str) -> None:
    refused = cli.run("schedules", "remove", "nightly", code=2)
    assert "0 3 * * *" in refused.stderr
    cli.run("schedules", "remove", "nightly", "--yes")
    assert [s.name for s in queue.schedules.list()] == ["ping"]
    removed = cli.json("schedules", "remove", "ping", "-q", "emails", "--yes")
    assert removed == [{"queue": "emails", "name": "ping", "removed": True}]


def test_a_name_that_is_not_there(cli: Cli) -> None:
    for verb in ("pause", "resume", "run", "remove"):
        done = cli.run("schedules", verb, "nothing", code=3)
        assert "no schedule 'nothing': there are no schedules" in done.stderr
    assert "There are no schedules." in cli.run("schedules").stderr


def test_a_typo_is_answered_with_the_names_there_are(cli: Cli, schedule: str) -> None:
    said = cli.run("schedules", "run", "nigthly", code=3).stderr
    assert said == (
        "laneway: queue 'default' has no schedule 'nigthly': perhaps 'nightly' is meant\n"
    )
    assert "schedules: nightly" in cli.run("schedules", "run", "weekly", code=3).stderr
    elsewhere = cli.run("schedules", "run", "ping", code=3).stderr
    assert "queue 'emails' has one, so add --queue emails" in elsewhere


def test_topics(cli: Cli, queue: Queue) -> None:
    assert "There are no subscriptions." in cli.run("topics").stderr
    cli.run("topics", "subscribe", "orders", "-q", "receipts")
    cli.run("topics", "subscribe", "orders", "-q", "statistics", "-c", "all", "-k", "count")
    assert cli.json("topics") == [
        {"topic": "orders", "queue": "receipts", "channel": None, "kind": None},
        {"topic": "orders", "queue": "statistics", "channel": "all", "kind": "count"},
    ]
    assert "orders\tstatistics\tall\tcount" in cli.run("topics", "list").stdout
    cli.run("topics", "unsubscribe", "orders", "-q", "receipts")
    cli.run("topics", "unsubscribe", "orders", "-q", "receipts", code=3)
    assert [s.queue for s in queue.topic("orders").subscriptions()] == ["statistics"]


def test_topics_as_json(cli: Cli) -> None:
    subscription = {"topic": "orders", "queue": "receipts", "channel": "all", "kind": None}
    words = ["orders", "-q", "receipts"]
    assert cli.json("topics", "subscribe", *words, "-c", "all") == [subscription]
    assert cli.json("topics") == [subscription]
    for done, code in ((True, 0), (False, 3)):
        (answer,) = cli.json("topics", "unsubscribe", *words, code=code)
        assert answer == {"topic": "orders", "queue": "receipts", "unsubscribed": done}
