"""messages, show, history, cancel."""

import json
import re
from datetime import timedelta

import pytest

from laneway import LeaseLost, NewMessage, Queue
from tests.cli.commands import Cli

_INFO = {
    *("id", "queue", "channel", "kind", "key", "state", "priority", "due", "published_at"),
    *("first_published_at", "expires_at", "attempt", "max_attempts", "content_type", "headers"),
    *("payload_size", "fence", "worker", "claimed_at", "until", "died_at", "reason", "error_type"),
    *("error", "traceback", "progress"),
}


def fill(queue: Queue) -> list[int]:
    """Dead, leased, waiting and scheduled."""
    messages = [NewMessage({"n": n}, channel="a", kind=f"k{n}") for n in range(3)]
    messages.append(NewMessage("later", channel="b", delay=timedelta(hours=1)))
    ids = [p.id for p in queue.publish_many(messages) if p.id]
    dead, _ = queue.claim(2)
    dead.fail("no such customer", error=ValueError("\x1b[31mred"))
    return ids


def test_messages_by_filters_and_in_pages(cli: Cli, queue: Queue) -> None:
    dead, leased, waiting, later = fill(queue)

    def ids(*words: str) -> list[int]:
        return [info["id"] for info in cli.json("messages", *words)]

    assert ids() == [leased, waiting, later]
    assert ids("--state", "dead") == [dead]
    assert ids("--state", "leased") == [leased]
    assert ids("--channel", "b") == [later]
    assert ids("--kind", "k2") == [waiting]
    assert ids("--queue", "nobody") == []
    assert ids("-n", "1", "--after", str(leased)) == [waiting]
    assert set(cli.json("messages")[0]) == _INFO


def test_times_are_in_utc_whatever_the_servers_zone(
    cli: Cli, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = str(fill(queue)[0])
    queue.schedule("hourly", every=timedelta(hours=1))
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    for words in (
        *(["messages"], ["dead"], ["schedules"], ["stats"], ["channels"], ["top", "--once"]),
        *(["show", dead], ["history", dead]),
    ):
        times = re.findall(r"\d{4}-\d\d-\d\dT[^\"]+", json.dumps(cli.json(*words)))
        assert times and all(time.endswith("+00:00") for time in times), (words, times)


def test_messages_as_a_table_in_a_pipe(cli: Cli, queue: Queue) -> None:
    fill(queue)
    done = cli.run("messages", "-n", "3")
    head, *rows = (line.split("\t") for line in done.stdout.splitlines())
    assert head[:4] == ["id", "state", "queue", "channel"]
    assert [row[1] for row in rows] == ["leased", "waiting", "scheduled"]
    assert f"--after {rows[-1][0]}" in done.stderr
    assert "No message matches" in cli.run("messages", "-q", "nobody").stderr


def test_messages_of_a_state_nobody_knows(cli: Cli) -> None:
    assert "lost" in cli.run("messages", "--state", "lost", code=2).stderr


def test_show_a_message_wherever_it_is(cli: Cli, queue: Queue) -> None:
    dead, leased, waiting, later = fill(queue)
    queue.cancel([waiting])
    shown = {id: cli.run("show", str(id)).stdout for id in (dead, leased, waiting, later)}
    assert f"leased by {queue.worker}, expires in " in shown[leased]
    assert "no such customer" in shown[dead] and "ValueError" in shown[dead]
    assert "\x1b" not in shown[dead] and "\\x1b[31mred" in shown[dead]
    assert "finished: cancelled" in shown[waiting]
    assert "scheduled" in shown[later] and "later" in shown[later]


def test_a_stale_write_after_the_end_is_not_the_end(cli: Cli, queue: Queue) -> None:
    queue.publish(1)
    (message,) = queue.claim()
    message.complete()
    with pytest.raises(LeaseLost):
        message.complete()
    assert [entry["outcome"] for entry in cli.json("history", str(message.id))][-1] == "stale"
    assert "finished: completed" in cli.run("show", str(message.id)).stdout


def test_show_as_json(cli: Cli, queue: Queue) -> None:
    dead, _, waiting, later = fill(queue)
    queue.cancel([waiting])
    (found,) = cli.json("show", str(dead))
    assert set(found) == {"id", "state", "message", "payload", "history"}
    assert (found["state"], found["payload"]) == ("dead", {"n": 0})
    assert [entry["outcome"] for entry in found["history"]] == ["failed"]
    (found,) = cli.json("show", str(waiting))
    assert (found["state"], found["message"], found["payload"]) == ("finished", None, None)
    (found,) = cli.json("show", str(later), "--no-payload")
    assert found["payload"] is None and found["message"]["payload_size"] == 5


def test_show_the_payload_as_it_is(cli: Cli, queue: Queue) -> None:
    id = queue.publish(b"\x00\xff\n").id
    assert cli.run("show", str(id), "--raw").stdout_bytes == b"\x00\xff\n"
    assert "\\x00\\xff" in cli.run("show", str(id)).stdout


def test_what_never_was_is_not_shown(cli: Cli) -> None:
    for words in (["show", "77"], ["show", "77", "--raw"], ["history", "77"]):
        done = cli.run(*words, code=3)
        assert "77" in done.stderr
    cli.run("show", "x", code=2)


def test_history(cli: Cli, queue: Queue) -> None:
    dead = fill(queue)[0]
    queue.dead_letters.redrive([dead])
    entries = cli.json("history", str(dead))
    assert [entry["outcome"] for entry in entries] == ["failed", "redriven"]
    assert {"message_id", "ended_at", "worker", "fence", "terminal"} < set(entries[0])
    assert "redriven" in cli.run("history", str(dead)).stdout


def test_cancel_shows_what_and_does_it_if_told(cli: Cli, queue: Queue) -> None:
    dead, leased, waiting, later = fill(queue)
    refused = cli.run("cancel", str(waiting), code=2)
    assert "default/a  waiting" in refused.stderr and "add --yes" in refused.stderr
    assert queue.message(waiting) is not None
    answers = cli.json("cancel", str(waiting), str(later), "--yes")
    assert answers == [{"id": id, "status": "cancelled"} for id in (waiting, later)]
    done = cli.run("cancel", str(leased), str(dead), "--yes", code=3)
    assert "Cancelled 0 of 2." in done.stderr and f"{leased}\tleased" in done.stdout


def test_asking_in_a_terminal(cli: Cli, queue: Queue) -> None:
    waiting = str(fill(queue)[2])
    code, seen = cli.terminal("cancel", waiting, answer="n\n")
    assert code == 1 and "Nothing was done." in seen
    code, seen = cli.terminal("cancel", waiting, answer="y\n")
    assert code == 0 and "Cancelled 1 of 1." in seen


def test_a_terminal_has_a_table_that_fits(cli: Cli, queue: Queue) -> None:
    queue.publish({"n": 1}, channel="a-rather-long-name-of-a-tenant-42", kind="k")
    code, wide = cli.terminal("messages", columns=140)
    assert code == 0 and "worker" in wide and "\t" not in wide
    code, narrow = cli.terminal("messages", columns=40)
    assert code == 0 and "worker" not in narrow
    lines = re.sub(r"\x1b\[[0-9;]*m", "", narrow).replace("\r", "").split("\n")
    assert max(map(len, lines)) <= 40
    assert "\x1b[1m" in wide
    code, plain = cli.terminal("messages", columns=140, NO_COLOR="1", TERM="dumb")
    assert code == 0 and "\x1b" not in plain


def test_json_is_one_object_a_line(cli: Cli, queue: Queue) -> None:
    fill(queue)
    lines = cli.run("messages", "--json").stdout.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["leased", "waiting", "scheduled"]


def test_a_result_is_printed_while_it_is_kept(cli: Cli, queue: Queue) -> None:
    kept = cli.run("publish", "1", "--keep-result", "1h").stdout.strip()
    plain = cli.run("publish", "2").stdout.strip()
    assert "has not ended" in cli.run("result", kept, code=1).stderr
    first, second = sorted(queue.claim(2), key=lambda message: message.id)
    first.complete(result={"paid": True})
    second.complete()
    assert json.loads(cli.run("result", kept, "--timeout", "5s").stdout) == {"paid": True}
    assert cli.json("result", kept) == [{"paid": True}]
    assert "is not kept" in cli.run("result", plain, code=1).stderr
