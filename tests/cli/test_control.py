"""pause, resume, run-now, limits, audit; and that every action is in the audit."""

from getpass import getuser

from laneway import Queue
from laneway.limits import Adapt, Breaker
from laneway.shared_limits import SETTINGS
from tests.cli.commands import Cli


def test_pause_and_resume_a_queue_and_a_kind(cli: Cli, queue: Queue) -> None:
    queue.publish(1, kind="mail")
    (pause,) = cli.json("pause", "--for", "30m", "--reason", "deploy")
    assert (pause["queue"], pause["kind"], pause["reason"]) == ("default", None, "deploy")
    assert pause["until"] is not None and pause["actor"] == getuser()
    assert not queue.claim()
    assert "Resumed queue 'default'" in cli.run("resume").stderr
    assert "is not paused" in cli.run("resume", code=3).stderr
    cli.run("pause", "--kind", "mail", "--queue", "other")
    assert [one.kind for one in queue.pauses()] == ["mail"]
    assert cli.json("resume", "--kind", "mail", "--queue", "other")[0]["resumed"] is True
    assert len(queue.claim()) == 1


def test_pause_a_channel_for_a_time(cli: Cli, queue: Queue) -> None:
    cli.run("channels", "pause", "a", "--for", "1h")
    policy = queue.channel("a").policy()
    assert policy.paused and policy.paused_until is not None


def test_run_now(cli: Cli, queue: Queue) -> None:
    id = queue.publish(1, delay=3600).id
    assert "1 of 1 due now" in cli.run("run-now", str(id)).stderr
    assert len(queue.claim()) == 1
    (answer,) = cli.json("run-now", str(id), code=3)
    assert answer["status"] == "leased"


def test_limits(cli: Cli, queue: Queue) -> None:
    assert "No channel has limits" in cli.run("limits").stderr
    queue.publish_many([1, 2, 3], channel="a")
    queue.channel("a").limit(concurrency=1, backlog=10)
    queue.claim(2)
    done = cli.run("limits")
    assert "default\ta\t1/1\t\t2/10\t1.0\tconcurrency" in done.stdout
    assert cli.json("limits")[0]["policy"]["concurrency"] == 1


def test_shared_limits_that_adapt_and_break(cli: Cli, queue: Queue) -> None:
    bounds = ("--concurrency", "5", "--adapt-min", "2", "--adapt-max", "9")
    cli.run("shared-limits", "api", *bounds, "--failures", "0.2", "--pause", "2m")
    assert queue.limits["api"].get().adapt == Adapt(2, 9)
    done = cli.run("shared-limits", "api", "--minimum", "1", "--window", "1m")
    assert queue.limits["api"].get().breaker == Breaker(0.2, 60, 1, 120)
    assert "0/5" in done.stdout and "2 to 9" in done.stdout and "closed" in done.stdout
    for number in range(2):
        queue.publish(number, limits=["api"])
    queue.claim()[0].fail("no")
    assert not queue.claim()
    (found,) = cli.json("shared-limits")
    assert (found["state"], found["in_force"], found["adapted"]) == ("open", 1, 5)
    assert found["breaker"]["pause"] == 120 and found["failed"] == 1
    assert "open since" in cli.run("shared-limits").stdout
    cli.run("shared-limits", "api", "--adapt-min", "0", "--failures", "0")
    assert queue.limits["api"].get().settings | {"concurrency": None} == dict.fromkeys(SETTINGS)


def test_removing_a_shared_limit_asks(cli: Cli, queue: Queue) -> None:
    cli.run("shared-limits", "api", "--concurrency", "2")
    assert "--yes" in cli.run("shared-limits", "api", "--remove", code=2).stderr
    assert queue.limits["api"].get().concurrency == 2
    cli.run("shared-limits", "api", "--remove", "--yes")
    assert queue.limits.list() == []
    cli.run("shared-limits", "api", "--remove", "--yes", code=3)


def test_every_action_is_in_the_audit(cli: Cli, queue: Queue) -> None:
    assert "Nobody" in cli.run("audit").stderr
    queue.schedule("nightly", every=3600)
    id = queue.publish(1, delay=3600).id
    queue.publish(2, kind="mail")
    for message in queue.claim():
        message.fail("broken")
    cli.run("channels", "limit", "a", "--concurrency", "2")
    cli.run("channels", "pause", "a")
    cli.run("channels", "resume", "a")
    cli.run("channels", "remove", "a", "--yes")
    cli.run("run-now", str(id))
    cli.run("cancel", str(id), "--yes")
    cli.run("dead", "redrive", "--kind", "mail", "--yes")
    for message in queue.claim():
        message.fail("broken")
    (begun,) = cli.json("dead", "discard", "--kind", "mail", "--yes", "--background")
    assert (begun["action"], begun["total"], begun["state"]) == ("discard", 1, "running")
    queue.upkeep()
    assert queue.operations.get(begun["id"]).state == "done"
    for verb in ("pause", "resume", "run"):
        cli.run("schedules", verb, "nightly")
    cli.run("schedules", "remove", "nightly", "--yes")
    cli.run("topics", "subscribe", "orders")
    cli.run("topics", "unsubscribe", "orders")
    cli.run("pause")
    cli.run("resume")
    entries = cli.json("audit")
    assert [entry["action"] for entry in reversed(entries)] == [
        "limit",
        "pause_channel",
        "resume_channel",
        "remove_channel",
        "run_now",
        "cancel",
        "start_redrive",
        "start_discard",
        "pause_schedule",
        "resume_schedule",
        "run_schedule",
        "remove_schedule",
        "subscribe",
        "unsubscribe",
        "pause",
        "resume",
    ]
    assert {(entry["actor"], entry["source"]) for entry in entries} == {(getuser(), "cli")}
    assert len(cli.json("audit", "--limit", "2", "--before", str(entries[1]["id"]))) == 2
