"""Real processes that fire the same schedules, killed at any moment: every tick once."""

import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from datetime import datetime, timedelta

import pytest

from laneway import Queue
from laneway.schedule import SCHEDULE_HEADER, TICK_HEADER
from tests.place import Place

SECOND = timedelta(seconds=1)


def start(place: Place) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.time.firing_process", place.url, place.schema]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def stop(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.repeats("chaos kills processes that fire schedules too")
def test_processes_that_are_killed_fire_every_tick_once(place: Place) -> None:
    chance = random.Random(7)
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        begin = {
            f"s{n}": queue.schedule(f"s{n}", n, every=SECOND, catch_up="all").next_at
            for n in range(30)
        }
        running = [start(place), start(place)]
        try:
            for _ in range(6):
                time.sleep(chance.uniform(0.2, 0.6))
                stop(running.pop(0))
                running.append(start(place))
        finally:
            for process in running:
                stop(process)
        while queue.fire_schedules().look_again == timedelta(0):
            pass
        ends = {s.name: s.next_at for s in queue.schedules.list()}
        found = defaultdict(list)
        while messages := queue.claim(1000):
            for message in messages:
                tick = datetime.fromisoformat(message.headers[TICK_HEADER])
                found[message.headers[SCHEDULE_HEADER]].append(tick)
        for name, first in begin.items():
            count = (ends[name] - first) // SECOND
            assert count >= 3
            assert sorted(found[name]) == [first + n * SECOND for n in range(count)], name
