"""The options of a worker, checked."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from laneway.client.shared.checks import check_lease, check_number, check_queues
from laneway.durations import Duration, check_duration

from .settle.traceback_rule import TracebackRule, checked_rule


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    queues: tuple[str, ...]
    concurrency: int
    lease: timedelta
    grace: timedelta
    unhandled_delay: timedelta
    unhandled_timeout: timedelta
    processes: int
    max_messages: int | None
    max_runtime: timedelta | None
    traceback: TracebackRule
    until_empty: bool = False


def checked_options(
    queues: Iterable[str],
    concurrency: int,
    lease: Duration,
    grace: Duration,
    unhandled_delay: Duration,
    unhandled_timeout: Duration,
    processes: int | None,
    max_messages: int | None,
    max_runtime: Duration | None,
    traceback: TracebackRule,
) -> WorkerOptions:
    if processes is None:
        processes = os.cpu_count() or 1
    return WorkerOptions(
        check_queues(queues),
        _checked_concurrency(concurrency),
        check_lease(lease),
        check_duration("grace", grace),
        check_duration("unhandled_delay", unhandled_delay),
        check_duration("unhandled_timeout", unhandled_timeout),
        check_number("processes", processes, 1, 1000),
        _checked_messages(max_messages),
        _checked_runtime(max_runtime),
        checked_rule(traceback),
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


def limited_options(
    options: WorkerOptions,
    until_empty: bool,
    max_messages: int | None,
    max_runtime: Duration | None,
) -> WorkerOptions:
    """Of one run; a limit that is None stays the worker's own."""
    if max_messages is not None:
        options = replace(options, max_messages=_checked_messages(max_messages))
    if max_runtime is not None:
        options = replace(options, max_runtime=_checked_runtime(max_runtime))
    return replace(options, until_empty=until_empty)


def _checked_messages(most: int | None) -> int | None:
    return None if most is None else check_number("max_messages", most, 1, 2**63 - 1)


def _checked_runtime(longest: Duration | None) -> timedelta | None:
    return None if longest is None else check_duration("max_runtime", longest)


def _checked_concurrency(concurrency: int) -> int:
    return check_number("concurrency", concurrency, 1, 10_000)
