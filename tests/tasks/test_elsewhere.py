"""Tasks in other processes: by name, never by value."""

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark import cloudpickle

from laneway import Queue, Worker
from laneway.errors import InvalidOption
from tests.tasks.in_process import add, note, tasks


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/queue.db") as queue:
        queue.install()
        yield queue


def test_a_task_in_a_process_of_its_own(queue: Queue, tmp_path: Path) -> None:
    worker = Worker(queue)
    worker.include(tasks)
    tasks.bind(queue)
    note.publish(str(tmp_path / "note"), "hello")
    worker.run(until_empty=True)
    process, text = (tmp_path / "note").read_text().split(" ", 1)
    assert int(process) != os.getpid() and text == "hello note"


def test_tasks_are_sent_by_name(queue: Queue) -> None:
    """As Spark sends a worker's definition to its executors."""
    worker = Worker(queue)
    worker.include(tasks)
    tasks.bind(queue)
    dumps: Callable[[object], bytes] = cloudpickle.dumps
    definition = pickle.loads(dumps(worker.definition()))
    assert definition.handlers.find("add") is add.handler
    assert definition.options.queues == ("files",)
    assert pickle.loads(dumps(add)) is add

    @worker.task
    def inside(n: int) -> None: ...

    with pytest.raises(InvalidOption, match="the task inside is not at module level"):
        pickle.dumps(inside)
