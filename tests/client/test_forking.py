"""A client that was used, and then its process forked: each side has connections of its own."""

import multiprocessing

import pytest

from laneway import Queue
from tests.stores import STORES, Databases

MESSAGES = 20


def _work_in_child(queue: Queue, name: str, answers: "multiprocessing.Queue[set[str]]") -> None:
    found = set()
    for _ in range(MESSAGES):
        (message,) = queue.claim(queues=[name])
        found.add(message.text())
        message.complete()
    answers.put(found)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads
@pytest.mark.parametrize("store", [name for name in STORES if name != "SQLite in memory"])
def test_forked_processes_get_their_own_answers(store: str, request: pytest.FixtureRequest) -> None:
    databases: Databases = request.getfixturevalue(STORES[store].fixture)
    context = multiprocessing.get_context("fork")
    with Queue(databases.create_database("forking"), upkeep_every=None) as queue:
        queue.install()
        names = ["one", "two", "parent"]
        for name in names:
            queue.publish_many([name] * MESSAGES, queue=name)
        answers = [context.Queue() for _ in names]
        works = list(zip([queue] * 3, names, answers, strict=True))
        children = [context.Process(target=_work_in_child, args=work) for work in works[:2]]
        for child in children:
            child.start()
        _work_in_child(*works[2])
        assert [answer.get(timeout=30) for answer in answers] == [{name} for name in names]
        for child in children:
            child.join(30)
        assert queue.stats() == []
