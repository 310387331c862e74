"""channels: list, limit, pause, resume, remove."""

from laneway import Policy, Queue
from tests.cli.commands import Cli


def test_list_with_numbers_and_limits(cli: Cli, queue: Queue) -> None:
    queue.publish_many([1, 2], channel="a")
    queue.channel("b").limit(concurrency=2, rate=0.5, weight=3)
    full, limited = cli.json("channels", "list")
    assert (full["channel"], full["stats"]["waiting"]) == ("a", 2)
    assert (limited["channel"], limited["policy"]["concurrency"]) == ("b", 2)
    done = cli.run("channels")
    assert "default\tb\t0\t0\t0\t0\t\t\tconcurrency 2, 0.5/s burst 1, weight 3" in done.stdout
    assert cli.json("channels", "--queue", "nobody") == []
    assert len(cli.json("channels", "-n", "1")) == 1


def test_limit_changes_what_is_named_and_no_more(cli: Cli, queue: Queue) -> None:
    channel = queue.channel("a")
    channel.limit(concurrency=5, backlog=100)
    channel.pause()
    (policy,) = cli.json("channels", "limit", "a", "--rate", "10", "--burst", "20")
    assert policy == {
        "concurrency": 5,
        "rate": 10.0,
        "burst": 20,
        "backlog": 100,
        "weight": 1.0,
        "paused": True,
        "closing": False,
        "paused_until": None,
        "throttled": False,
    }
    done = cli.run("channels", "limit", "a", "--concurrency", "none", "--weight", "2")
    assert "concurrency 5" in done.stderr.partition("→")[0]
    assert channel.policy() == Policy(rate=10.0, burst=20, backlog=100, weight=2.0, paused=True)
    cli.run("channels", "limit", "a", "--rate", "none", "--backlog", "none")
    assert channel.policy() == Policy(weight=2.0, paused=True)


def test_impossible_limits(cli: Cli, queue: Queue) -> None:
    for words in (
        ["--rate", "fast"],
        ["--concurrency", "1.5"],
        ["--concurrency", "inf"],
        ["--concurrency", "nan"],
        ["--backlog", "1e3"],
        ["--rate", "nan"],
        ["--burst", "3"],
        ["--weight", "0"],
    ):
        assert cli.run("channels", "limit", "a", *words, code=2).stderr
    assert queue.channel("a").policy() == Policy()


def test_large_whole_numbers_stay_what_they_are(cli: Cli) -> None:
    for number in (2**53 + 1, 2**63 - 1):
        (policy,) = cli.json("channels", "limit", "a", "--concurrency", str(number))
        assert policy["concurrency"] == number


def test_pause_and_resume(cli: Cli, queue: Queue) -> None:
    queue.publish(1, channel="a", queue="emails")
    cli.run("channels", "pause", "a", "b", "--queue", "emails")
    assert queue.channel("a", queue="emails").policy().paused
    assert not queue.channel("a").policy().paused
    paused = cli.json("channels", "list", "--paused")
    assert [(info["queue"], info["channel"]) for info in paused] == [
        ("emails", "a"),
        ("emails", "b"),
    ]
    assert cli.json("channels", "list", "--no-paused") == []
    done = cli.run("channels", "resume", "a", "-q", "emails")
    assert "Resumed in queue 'emails': a." in done.stderr
    assert not queue.channel("a", queue="emails").policy().paused


def test_what_was_done_as_json(cli: Cli) -> None:
    a, b = {"queue": "emails", "channel": "a"}, {"queue": "emails", "channel": "b"}
    words = ["a", "b", "-q", "emails"]
    paused = cli.json("channels", "pause", *words)
    assert paused == [a | {"paused": True}, b | {"paused": True}]
    resumed = cli.json("channels", "resume", *words)
    assert resumed == [a | {"paused": False}, b | {"paused": False}]
    assert cli.json("channels", "remove", *words, code=2) == []
    removed = cli.json("channels", "remove", *words, "--yes")
    assert removed == [a | {"closing": True}, b | {"closing": True}]


def test_remove_asks(cli: Cli, queue: Queue) -> None:
    queue.publish_many([1, 2], channel="a")
    refused = cli.run("channels", "remove", "a", code=2)
    assert "a: 2 messages left" in refused.stderr
    assert not queue.channel("a").policy().closing
    cli.run("channels", "remove", "a", "--yes")
    assert queue.channel("a").policy().closing
