"""What people do to the tables by hand, and what others do while the tables change."""

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from laneway import Queue
from tests.next_version import add_migration


def test_a_channel_with_messages_cannot_be_deleted_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    connection = sqlite3.connect(file, isolation_level=None)
    with Queue(f"sqlite:///{file}") as queue, closing(connection):
        queue.install()
        queue.publish(1, channel="tenant", key="one")
        for state in ("waiting", "leased"):
            with pytest.raises(sqlite3.IntegrityError, match="has messages: remove it with"):
                connection.execute("delete from laneway_channel")
            if state == "waiting":
                (message,) = queue.claim()
        message.complete()
        assert queue.publish(2, channel="tenant", key="one").status == "published"
        (message,) = queue.claim()
        message.complete()
        assert connection.execute("delete from laneway_channel").rowcount == 1
        queue.publish(3, channel="tenant")
        assert [message.channel for message in queue.claim(5)] == ["tenant"]
        queue.uninstall()


def test_traffic_goes_on_during_an_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of clients that know the next version, before and after its columns are there."""
    file = tmp_path / "shop.db"
    with Queue(f"sqlite:///{file}") as queue:
        queue.install()
    newest = add_migration(monkeypatch, "sqlite")
    wrong: list[Exception] = []
    stop = threading.Event()

    def keep(verb: Callable[[Queue], object]) -> None:
        with Queue(f"sqlite:///{file}", upkeep_every=0.01) as queue:
            while not stop.is_set():
                try:
                    verb(queue)
                except Exception as error:
                    wrong.append(error)
                    return

    def work(queue: Queue) -> None:
        for message in queue.claim(5):
            message.complete()

    verbs = (lambda queue: queue.publish(1), work)
    threads = [threading.Thread(target=keep, args=(verb,)) for verb in verbs]
    for thread in threads:
        thread.start()
    with Queue(f"sqlite:///{file}") as queue:
        time.sleep(0.2)
        queue.upgrade()
        time.sleep(0.2)
        stop.set()
        for thread in threads:
            thread.join()
        assert not wrong
        assert queue.schema_version() == newest
