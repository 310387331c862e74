"""The options of a worker, checked."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from penstock.client.checks import check_lease, check_length, check_number, check_queues


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    queues: tuple[str, ...]
    concurrency: int
    lease: timedelta
    grace: timedelta
    unknown_delay: timedelta
    unknown_patience: timedelta
    processes: int
    stop_after: int | None
    stop_in: timedelta | None
    until_empty: bool = False


def checked_options(
    queues: Iterable[str],
    concurrency: int,
    lease: timedelta,
    grace: timedelta,
    unknown_delay: timedelta,
    unknown_patience: timedelta,
    processes: int | None,
    stop_after: int | None,
    stop_in: timedelta | None,
) -> WorkerOptions:
    if stop_after is not None:
        check_number("stop_after", stop_after, 1, 2**63 - 1)
    if stop_in is not None:
        check_length("stop_in", stop_in)
    if processes is None:
        processes = os.cpu_count() or 1
    return WorkerOptions(
        check_queues(queues),
        _checked_concurrency(concurrency),
        check_lease(lease),
        check_length("grace", grace),
        check_length("unknown_delay", unknown_delay),
        check_length("unknown_patience", unknown_patience),
        check_number("processes", processes, 1, 1000),
        stop_after,
        stop_in,
    )


def changed_options(
    options: WorkerOptions, queues: Iterable[str] | None, concurrency: int | None
) -> WorkerOptions:
    """What is None stays as it is."""
    if queues is not None:
        options = replace(options, queues=check_queues(queues))
    if concurrency is not None:
        options = replace(options, concurrency=_checked_concurrency(concurrency))
    return options


def _checked_concurrency(concurrency: int) -> int:
    return check_number("concurrency", concurrency, 1, 10_000)
