"""worker: a module's worker, run and stopped as a person does."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.drivers.errors import masked
from tests.cli.commands import COMMAND, Cli
from tests.worker.harness import eventually

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


_LOGGING = """
import asyncio, logging, os
from laneway import Queue, Worker

log = logging.getLogger("shop")
queue = Queue(os.environ["DATABASE_URL"], schema=os.environ["LANEWAY_SCHEMA"])
worker = Worker(queue, processes=1)

@worker.handler("loop")
async def loop(n: int) -> None:
    log.info("in the loop", extra={"order": n})

@worker.handler("thread")
def thread(n: int) -> None:
    log.info("in a thread", extra={"order": n})

def process(n: int) -> None:
    log.info("in a process", extra={"order": n})

worker.handler("process", run="process")(process)
"""
_WAYS = {"loop": "in the loop", "thread": "in a thread", "process": "in a process"}


@pytest.mark.parametrize("as_json", [True, False])
def test_what_handlers_log_names_their_message(
    cli: Cli, queue: Queue, folder: Path, as_json: bool
) -> None:
    (folder / "logging_jobs.py").write_text(_LOGGING)
    ids = {kind: queue.publish(7, kind=kind, channel="tenant-1").id for kind in _WAYS}
    options = ["--json"] if as_json else []
    with start(cli, folder, "logging_jobs:worker", "--until-empty", *options) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    for kind, text in _WAYS.items():
        (line,) = [line for line in errors.splitlines() if text in line]
        if not as_json:
            about = f"message {ids[kind]}, {kind}, channel tenant-1, attempt 1"
            assert line.endswith(f"INFO shop: {text} [{about}]")
            continue
        found = json.loads(line)
        assert (found["message_id"], found["kind"], found["attempt"]) == (ids[kind], kind, 1)
        assert (found["channel"], found["order"]) == ("tenant-1", 7)


def test_check(cli: Cli, folder: Path) -> None:
    with start(cli, folder, "shop_jobs:worker", "--check", "--json") as process:
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert json.loads(out) == {
        "worker": "shop_jobs:worker",
        "databases": [f"{masked(cli.url)}, schema {cli.schema}"],
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
    assert "failed at attempt 1 of 2, retrying in 0 s: ValueError: no Ada" in again
    assert (
        " ERROR " in dead
        and "failed at attempt 2 of 2, now a dead letter (attempts=2 of Constant): ValueError"
        in dead
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


def test_two_modules_with_a_task_of_one_name_are_refused(cli: Cli, tmp_path: Path) -> None:
    module = "from laneway import Tasks\ntasks = Tasks()\n@tasks.task\ndef send(n): ...\n"
    for name in ("shop_mail", "shop_texts"):
        (tmp_path / f"{name}.py").write_text(module)
    with start(cli, tmp_path, "shop_mail", "shop_texts", "--until-empty") as process:
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 2, out + errors
    assert "two handlers for kind 'send': shop_mail.send and shop_texts.send; give one" in errors


_OWN = """
from laneway import Queue, Tasks, Worker
queue = Queue({url!r}, schema={schema!r})
tasks = Tasks()

@tasks.task
def greet(name: str) -> None:
    print("hello", name, flush=True)
"""


@pytest.mark.parametrize("how", ["worker", "tasks"])
def test_a_module_with_a_client_refuses_another_database(
    cli: Cli, queue: Queue, tmp_path: Path, how: str
) -> None:
    """Its messages are in production; whoever types staging must not process them."""
    text = _OWN.format(url=cli.url, schema=cli.schema)
    more = {"worker": "worker = Worker(queue)\nworker.include(tasks)", "tasks": "tasks.bind(queue)"}
    (tmp_path / "own_jobs.py").write_text(f"{text}\n{more[how]}\n")
    id = queue.publish("Ada", kind="greet").id
    staging = f"postgresql://app:pencil@staging.invalid/shop?application_name={how}"
    for words, option in [
        (["--url", staging], "--url"),
        (["--url", cli.url, "--schema", "other"], "--schema"),
        (["--url", f"a={cli.url}", "--url", f"b={staging}"], "--url"),
        (["--url", staging, "--check"], "--url"),
    ]:
        with start(cli, tmp_path, "own_jobs", *words, "--until-empty") as process:
            out, errors = process.communicate(timeout=60)
        assert (process.returncode, out) == (2, ""), errors
        assert f"has a client of its own, on {masked(cli.url)}, schema {cli.schema}" in errors
        assert f"and {option} does not change that" in errors and "pencil" not in errors
    assert queue.history(id or 0) == []
    same = cli.url.replace("postgresql://", "postgres://", 1)
    words = ["own_jobs", "--url", same, "--schema", cli.schema, "--until-empty"]
    with start(Cli(staging, "elsewhere"), tmp_path, *words) as process:
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "hello Ada\n"), errors
    assert " is elsewhere" not in errors and "staging" not in errors, "the options take their place"
    with start(Cli(staging, "elsewhere"), tmp_path, "own_jobs", "--check") as process:
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "DATABASE_URL is postgresql://app:***@staging.invalid/shop" in errors
    assert "LANEWAY_SCHEMA is elsewhere, but the module uses " in errors


def test_the_first_line_says_where_it_works_and_the_last_what_was_done(
    cli: Cli, queue: Queue, tmp_path: Path
) -> None:
    text = """
import asyncio, os
from laneway import AsyncMessage, INJECTED, Queue, Worker
queue = Queue(os.environ["DATABASE_URL"], schema=os.environ["LANEWAY_SCHEMA"])
worker = Worker(queue, grace=0)

@worker.task
async def done(by_hand: bool, message: AsyncMessage = INJECTED) -> None:
    if by_hand:
        await message.complete()

@worker.task
async def hangs() -> None:
    print("hangs", flush=True)
    await asyncio.sleep(600)

@worker.task(ack="reject")
async def fails() -> None:
    raise ValueError("no")
"""
    (tmp_path / "told_jobs.py").write_text(text)
    for by_hand in (True, False):
        queue.publish(by_hand, kind="done")
    queue.publish({}, kind="fails")
    queue.publish({}, kind="hangs")
    with start(cli, tmp_path, "told_jobs") as process:
        assert process.stdout is not None and process.stdout.readline() == "hangs\n"
        eventually(lambda: sum(n.leased + n.waiting for n in queue.stats()) == 1)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    lines = [line for line in errors.splitlines() if " worker " in line and ": " in line]
    assert f"; database {masked(cli.url)}, schema {cli.schema}" in lines[0]
    assert "stopped: 2 completed, 1 given back, 1 dead-lettered" in lines[-1]


_LONG = """
import logging
import os
import time
import warnings
from laneway import Queue, Worker

logging.basicConfig()
queue = Queue(os.environ["DATABASE_URL"], pool_size=4, call_timeout=2)
worker = Worker(queue, lease=3)

@worker.handler("long")
def long(payload: int) -> None:
    warnings.warn("a warning")
    print("begun", flush=True)
    time.sleep(600)
"""


def test_every_line_is_json_when_the_server_goes_away(tmp_path: Path) -> None:
    """Those of the heartbeat process too, of upkeep, of warnings, and those that a module has
    handlers of its own for."""
    (tmp_path / "long_jobs.py").write_text(_LONG)
    with EmbeddedPostgres() as server:
        url = server.create_database("logs")
        with Queue(url) as queue:
            queue.install()
            queue.publish(1, kind="long")
        with start(Cli(url, "laneway"), tmp_path, "long_jobs:worker", "--json") as process:
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline() == "begun\n"
            server.kill()
            wanted = {"leases could not be extended", "upkeep failed", "a warning"}
            while wanted:
                line = json.loads(process.stderr.readline())
                assert {"time", "level", "logger", "text"} <= set(line)
                wanted = {text for text in wanted if text not in line["text"]}
            os.kill(process.pid, signal.SIGKILL)
            for text in process.stderr.read().splitlines():
                json.loads(text)
