"""The demo: a noisy tenant, many quiet ones, limits, two faults, and a verdict."""

import time
from datetime import timedelta
from tempfile import mkdtemp

from laneway import LanewayError, Queue

from .results import HistoryReader, Results, attempts_by_outcome, demo_report, summarize
from .tenants import (
    BURST,
    LIMIT,
    LIMITED,
    NOISY,
    QUIET,
    QUIET_TENANTS,
    RATE,
    RATED,
    SCHEMA,
    publish_all,
)
from .view import View, open_view
from .workers import WORKERS, WorkerProcesses

WINDOW = 500
TIMEOUT = 90.0  # seconds until the demo gives up; it takes a fifth of that
_REFRESH = 0.15


def run_demo(url: str, *, report: bool, spark: bool) -> bool:
    """Runs the demo in a schema of its own; returns whether every check passed."""
    with Queue(url, schema=SCHEMA) as queue, open_view() as view:
        queue.install()
        queue.configure(backoff_initial=timedelta(milliseconds=200))
        reader = HistoryReader(queue)
        published = publish_all(queue)
        view.say(
            f"Published {published:,} messages: {NOISY:,} of a noisy tenant first, then {QUIET} of "
            f"each of {QUIET_TENANTS} quiet tenants,\n{LIMITED} of a tenant limited to {LIMIT} at "
            f"once, {RATED} of one limited to {RATE} a second, and one that always fails."
        )
        codes = _work(url, queue, reader, view)
    results = summarize(reader.entries, WINDOW, RATE, BURST)
    _print_shares(results)
    good = _print_verdict(results, published, codes)
    if report:
        build_report(url)
    if spark:
        count_with_spark(url)
    return good


def build_report(url: str) -> None:
    """The same history as a page. If it cannot be built, the verdict stays as it is."""
    try:
        page = demo_report(url, SCHEMA, mkdtemp(prefix="laneway-demo-"))
    except LanewayError as error:
        print(f"No report this time: {error}.")
    else:
        print(f"The report over this history (open it in a browser): {page}")


def count_with_spark(url: str) -> None:
    """The same history, read by Spark."""
    print("Reading the same history with Spark, which takes some seconds to start ...", flush=True)
    try:
        counted = attempts_by_outcome(url, SCHEMA)
    except LanewayError as error:
        print(f"Spark could not read it: {error}.")
    else:
        print("Attempts by outcome: " + ", ".join(f"{n:,} {what}" for what, n in counted.items()))


def _work(url: str, queue: Queue, reader: HistoryReader, view: View) -> list[int]:
    with WorkerProcesses(url) as workers:
        view.say(f"Started {len(WORKERS)} worker processes, each with 10 handlers at a time.")
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            workers.inject_fault(queue, view.say)
            reader.read()
            numbers = queue.channel_stats(limit=100)
            view.show(numbers, reader.entries)
            idle = not any(n.waiting or n.leased or n.scheduled for n in numbers)
            if idle and workers.is_done:
                break
            time.sleep(_REFRESH)
        codes = workers.stop()
        reader.read()
        return codes


def _print_shares(results: Results) -> None:
    print(f"Who was served in the first {WINDOW} starts, though the noisy tenant was there first:")
    for group, starts in sorted(results.first_starts.items()):
        label = f"{QUIET_TENANTS} quiet tenants" if group == "quiet" else f"the {group} tenant"
        print(f"  {label:<18} {starts:>4}  {'█' * round(starts / 10)}")


def _print_verdict(results: Results, published: int, codes: list[int]) -> bool:
    quiet = results.first_starts.get("quiet", 0)
    killed, frozen = (results.expired.get(name, 0) for name in WORKERS[:2])
    checks = [
        (
            f"nothing lost: published {published:,} = "
            f"completed {results.completed:,} + dead {results.dead}",
            published == results.completed + results.dead,
        ),
        (f"nothing completed twice: {results.twice}", results.twice == 0),
        (
            f"recovered: the killed worker held {killed} messages, the frozen one {frozen}; "
            f"{results.redelivered} were completed by another attempt",
            killed > 0 and results.redelivered > 0,
        ),
        (
            f"the limit held: at most {results.most_at_once} at once, {LIMIT} allowed",
            0 < results.most_at_once <= LIMIT,
        ),
        (
            f"the rate held: never more than a burst of {BURST} plus {RATE} per second",
            results.rate_excess <= 0,
        ),
        (
            f"fair: all {quiet} messages of the quiet tenants were among the first {WINDOW} starts",
            quiet == QUIET_TENANTS * QUIET,
        ),
        ("the message that always fails is a dead letter", results.dead == 1),
        ("the other workers stopped gracefully", bool(codes) and not any(codes)),
    ]
    for text, good in checks:
        print(f"{'ok  ' if good else 'BAD '} {text}")
    return all(good for _, good in checks)
