"""The jobs of a lake as schedules of the queue itself: no cron, no second scheduler.

DATABASE_URL=postgresql://localhost/shop LAKE=/srv/lake python examples/lake_schedule.py
"""

import os
import sys
from datetime import timedelta

from laneway import Queue, Worker
from laneway.lake import Lake

URL, ROOT = os.environ["DATABASE_URL"], os.environ["LAKE"]

# A queue of its own: these jobs have a history like all others.
queue = Queue(URL, name="lake")
worker = Worker(queue, concurrency=1)


def open_lake() -> Lake:
    return Lake(URL, ROOT, say=print)


@worker.handler("lake.sync")
def sync() -> None:
    """Also reads back what it wrote: only verified files may be purged."""
    lake = open_lake()
    lake.sync()
    damaged = lake.verify().damaged
    if damaged:
        raise RuntimeError(f"{len(damaged)} files are damaged; the next sync writes them again")


@worker.handler("lake.tidy")
def tidy() -> None:
    lake = open_lake()
    lake.compact()
    lake.purge(keep=timedelta(days=30))


@worker.handler("lake.report", timeout=timedelta(minutes=30))
def report() -> None:
    print("report:", open_lake().report().page)


def create_schedules() -> None:
    """Safe in every process. With a key, a tick is skipped while the last one still runs."""
    queue.schedule("lake-sync", every=timedelta(minutes=5), kind="lake.sync", key="sync")
    queue.schedule("lake-tidy", cron="30 3 * * *", kind="lake.tidy", key="tidy")
    queue.schedule("lake-report", cron="5 * * * *", kind="lake.report", key="report")


if __name__ == "__main__":
    queue.install()
    create_schedules()
    if "--now" in sys.argv:  # sync and tidy once, without waiting for ticks
        for name in ("lake-sync", "lake-tidy"):
            queue.schedules.run(name)
            worker.run(until_empty=True)
    else:
        worker.run()
    queue.close()
