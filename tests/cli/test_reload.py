"""worker --queue, --concurrency and --reload, with real processes."""

import os
import queue as queues
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from laneway import Queue
from laneway.cli.reload import first_difference, python_files
from tests.cli.commands import Cli

_MODULE = """
import asyncio, os
from laneway import Queue, Worker

worker = Worker(Queue(os.environ["DATABASE_URL"], schema=os.environ["LANEWAY_SCHEMA"]))

@worker.handler("greet")
async def greet(name: str) -> None:
    print("start", name, flush=True)
    await asyncio.sleep(SECONDS)
    print("VERSION", name, flush=True)
"""


def write_module(folder: Path, version: str, seconds: float = 0.0) -> None:
    text = _MODULE.replace("VERSION", version).replace("SECONDS", str(seconds))
    (folder / "jobs.py").write_text(text)


class Output:
    """The lines of a process, as they come."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._lines: queues.Queue[str] = queues.Queue()
        self.seen: list[str] = []
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: Iterable[str]) -> None:
        for line in stream:
            self._lines.put(line.strip())

    def until(self, text: str) -> None:
        end = time.monotonic() + 60
        while not any(text in line for line in self.seen):
            try:
                self.seen.append(self._lines.get(timeout=end - time.monotonic()))
            except (queues.Empty, ValueError):
                raise AssertionError(f"{text!r} is not in {self.seen}") from None


def test_queue_and_concurrency_override_the_worker(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    write_module(tmp_path, "hello")
    for name in ("default", "emails", "reports"):
        queue.publish(name, kind="greet", queue=name)
    words = ["worker", "jobs:worker", "--queue", "emails", "-q", "reports", "--concurrency", "3"]
    with cli.process(*words, "--until-empty", cwd=tmp_path) as process:
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert {line for line in out.splitlines() if line.startswith("hello")} == {
        "hello emails",
        "hello reports",
    }
    assert [info.queue for info in queue.messages()] == ["default"]
    assert "concurrency 3" in errors


def test_a_bad_queue_name_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    write_module(tmp_path, "hello")
    with cli.process("worker", "jobs:worker", "--queue", "", cwd=tmp_path) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors.startswith("laneway: ") and "Traceback" not in errors


def test_an_edit_takes_effect_and_no_message_is_lost(
    cli: Cli, queue: Queue, tmp_path: Path
) -> None:
    write_module(tmp_path, "old", seconds=1.0)
    first = queue.publish("Ada", kind="greet").id
    words = ["worker", "jobs:worker", "--reload", "--concurrency", "1"]
    with cli.process(*words, cwd=tmp_path) as process:
        output = Output(process)
        output.until("start Ada")
        waiting = [queue.publish(name, kind="greet").id for name in ("Bob", "Eve")]
        write_module(tmp_path, "new")
        output.until("jobs.py changed: restarting the worker.")
        output.until("old Ada")  # what runs is finished by the old code
        output.until("new Eve")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    for id in (first, *waiting):
        assert id is not None
        entries = queue.history(id)
        assert entries[-1].outcome == "completed"
        assert {entry.outcome for entry in entries[:-1]} <= {"given_back"}
        assert entries[-1].attempt == 1
    assert queue.messages() == []


def test_a_syntax_error_waits_for_the_next_change(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("def")
    queue.publish("Ada", kind="greet")
    with cli.process("worker", "jobs:worker", "--reload", cwd=tmp_path) as process:
        output = Output(process)
        output.until("The worker exited with code 1: waiting for a change.")
        write_module(tmp_path, "mended")
        output.until("mended Ada")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_the_worker_ends_with_a_watcher_that_was_killed(
    cli: Cli, queue: Queue, tmp_path: Path
) -> None:
    write_module(tmp_path, "hello")
    (tmp_path / "jobs.py").write_text(
        (tmp_path / "jobs.py").read_text() + '\nprint("pid", os.getpid(), flush=True)\n'
    )
    queue.publish("Ada", kind="greet")
    with cli.process("worker", "jobs:worker", "--reload", cwd=tmp_path) as process:
        output = Output(process)
        output.until("hello Ada")
        pid = next(int(line.split()[1]) for line in output.seen if line.startswith("pid "))
        process.kill()
    deadline = time.monotonic() + 30
    while _is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _is_alive(pid)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_what_is_watched(tmp_path: Path) -> None:
    for name in ("jobs.py", "shop/mail.py", ".git/hook.py", "venv/lib/x.py", "notes.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    before = python_files(tmp_path)
    assert set(before) == {"jobs.py", "shop/mail.py"}
    assert first_difference(before, python_files(tmp_path)) is None
    (tmp_path / "shop/mail.py").write_text("x = 1")
    assert first_difference(before, python_files(tmp_path)) == "shop/mail.py"
    (tmp_path / "shop/mail.py").unlink()
    assert first_difference(before, python_files(tmp_path)) == "shop/mail.py"


@pytest.mark.parametrize("option", ["--check", "--spark"])
def test_reload_does_not_go_with_everything(cli: Cli, option: str) -> None:
    done = cli.run("worker", "jobs:worker", "--reload", option, code=2)
    assert done.stderr == "laneway: --reload cannot be combined with --check or --spark\n"
