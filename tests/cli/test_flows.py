"""laneway flows: list, show, wait, cancel."""

from laneway import Queue
from tests.cli.commands import Cli


def test_a_flow_is_listed_shown_and_cancelled(cli: Cli, queue: Queue) -> None:
    assert "There are no flows" in cli.run("flows").stderr
    with queue.flow("import:1") as flow:
        pages = [flow.add({"n": n}, kind="page", channel="a", delay=3600) for n in range(7)]
        flow.add("merge", kind="merge", channel="a", after=pages)
    listed = cli.run("flows").stdout
    assert "import:1" in listed and "running" in listed
    (found,) = cli.json("flows", "list")
    assert (found["id"], found["live"], found["held"]) == (flow.id, 7, 1)
    shown = cli.run("flows", "show", str(flow.id))
    assert "and 2 more" in shown.stdout and "7 running or waiting, 1 held" in shown.stderr
    assert len(cli.json("flows", "show", str(flow.id))) == 8
    cli.run("flows", "wait", str(flow.id), "--timeout", "0", code=1)
    done = cli.run("flows", "cancel", str(flow.id), "--yes")
    assert "is cancelled: 8 failed" in done.stderr
    assert queue.audit()[0].action == "cancel_flow"
    cli.run("flows", "show", "99", code=3)


def test_wait_tells_by_its_exit_code_how_a_flow_ended(cli: Cli, queue: Queue) -> None:
    with queue.flow("short") as flow:
        flow.add(1)
    queue.complete(queue.claim())
    (ended,) = cli.json("flows", "wait", str(flow.id))
    assert ended["state"] == "completed"
