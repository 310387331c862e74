"""worker: a module's worker, run and stopped as a person does."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from laneway import Queue
from tests.cli.commands import COMMAND, Cli

_MODULE = """
import os
from laneway import Queue, Worker

queue = Queue(os.environ["DATABASE_URL"], schema=os.environ["LANEWAY_SCHEMA"])
worker = Worker(queue, concurrency=2)
idle = Worker(queue)
something = 7

@worker.handler("greet")
async def greet(name: str) -> None:
    print("hello", name, flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop_jobs.py").write_text(_MODULE)
    (tmp_path / "broken_jobs.py").write_text("import nothing_of_this_name")
    return tmp_path


def start(cli: Cli, folder: Path, *words: str) -> "subprocess.Popen[str]":
    return cli.process("worker", *words, cwd=folder)


def test_it_works_and_stops_in_good_order(cli: Cli, queue: Queue, folder: Path) -> None:
    id = queue.publish("Ada", kind="greet").id
    assert id is not None
    with start(cli, folder, "shop_jobs:worker") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "hello Ada\n"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert [entry.outcome for entry in queue.history(id)] == ["completed"]


def test_until_empty(cli: Cli, queue: Queue, folder: Path) -> None:
    queue.publish("Ada", kind="greet")
    queue.publish("Grace", kind="greet")
    with start(cli, folder, "shop_jobs:worker", "--until-empty") as process:
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert sorted(out.splitlines()) == ["hello Ada", "hello Grace"]


def test_limits_of_a_run(cli: Cli, queue: Queue, folder: Path) -> None:
    queue.publish("Ada", kind="greet")
    queue.publish("Grace", kind="greet")
    for words in (["--max-messages", "1"], ["--max-runtime", "1s"]):
        with start(cli, folder, "shop_jobs:worker", *words) as process:
            out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert len(out.splitlines()) == 1
    with start(cli, folder, "shop_jobs:worker", "--max-runtime", "soon") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and "'soon'" in errors


def test_logs_as_json(cli: Cli, queue: Queue, folder: Path) -> None:
    id = queue.publish("Ada", kind="nobody").id
    words = ["shop_jobs:worker", "--until-empty", "--json", "--verbose"]
    with start(cli, folder, *words) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    lines = [json.loads(line) for line in errors.splitlines()]
    assert lines and all({"time", "level", "logger", "text"} <= set(line) for line in lines)
    assert id in {line.get("message_id") for line in lines} or any(
        str(id) in e["text"] for e in lines
    )


def test_check(cli: Cli, folder: Path) -> None:
    with start(cli, folder, "shop_jobs:worker", "--check", "--json") as process:
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert json.loads(out) == {
        "worker": "shop_jobs:worker",
        "queues": ["default"],
        "kinds": ["greet"],
        "problems": [],
    }
    elsewhere = Cli(cli.url, "nowhere")
    with start(elsewhere, folder, "shop_jobs:worker", "--check") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "install" in errors
    with start(cli, folder, "shop_jobs:idle", "--check") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "no handler" in errors


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("shop_jobs:", "write module:worker, e.g. jobs:worker"),
        ("nowhere.jobs:worker", "no module 'nowhere' in the current folder or installed"),
        ("shop_jobs:missing", "has no 'missing': use shop_jobs:worker or shop_jobs:idle"),
        ("shop_jobs:something", "is of type int, not a Worker: use shop_jobs:worker"),
    ],
)
def test_a_target_that_is_none(cli: Cli, folder: Path, target: str, says: str) -> None:
    with start(cli, folder, target) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and "Traceback" not in errors
    assert says in " ".join(errors.split())


def test_a_module_that_cannot_import_shows_where(folder: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "worker", "broken_jobs:worker"],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "broken_jobs.py" in done.stderr and "nothing_of_this_name" in done.stderr


def test_a_variable_that_is_not_exported_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "needy_jobs.py").write_text("import os\nos.environ['SHOP_KEY_OF_TESTS']")
    with start(cli, tmp_path, "needy_jobs:worker") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "SHOP_KEY_OF_TESTS" in errors and "Traceback" not in errors


def test_a_failure_says_which_message_and_what_comes_of_it(
    cli: Cli, queue: Queue, tmp_path: Path
) -> None:
    text = _MODULE.replace('print("hello", name, flush=True)', 'raise ValueError("no " + name)')
    text = text.replace("from laneway import", "from laneway import Constant,")
    text = text.replace('"greet")', '"greet", retry=Constant(every=0, attempts=2))')
    (tmp_path / "shop_jobs.py").write_text(text)
    id = queue.publish("Ada", kind="greet").id
    with start(cli, tmp_path, "shop_jobs:worker", "--until-empty") as process:
        _, errors = process.communicate(timeout=60)
    again, dead = (line for line in errors.splitlines() if f"message {id} (default, " in line)
    assert "failed at attempt 1, retrying in 0 s: ValueError: no Ada" in again
    assert (
        " ERROR " in dead and "failed at attempt 2, now a dead letter: ValueError: no Ada" in dead
    )
    assert "performing.py" not in errors, "only the handler's own frames"
    assert "started: queues default; kinds greet; concurrency 2" in errors


_MAIL = """
from laneway import Tasks
tasks = Tasks(queue="emails")

@tasks.task
def send_receipt(order: int, copy: bool = False) -> None:
    print("receipt", order, copy, flush=True)
"""
_ORDERS = """
from laneway import Tasks
from shop_mail import send_receipt
orders = Tasks()

@orders.task
async def place(order: int) -> None:
    print("placed", order, flush=True)
    await send_receipt.apublish(order, copy=True)
"""


def test_one_worker_for_the_tasks_of_several_modules(cli: Cli, queue: Queue, folder: Path) -> None:
    (folder / "shop_mail.py").write_text(_MAIL)
    (folder / "shop_orders.py").write_text(_ORDERS)
    queue.publish(7, kind="place")
    words = ["shop_orders", "shop_mail:tasks", "shop_jobs"]
    for modules in (words[:2], words):
        with start(cli, folder, *modules, "--check") as process:
            out, errors = process.communicate(timeout=60)
        assert process.returncode == 0 and "place, send_receipt" in out + errors
    with start(cli, folder, *words[:2], "--until-empty", "--concurrency", "3") as process:
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out.splitlines()) == (0, ["placed 7", "receipt 7 True"]), errors
