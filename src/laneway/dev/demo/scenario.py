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


def run_demo(url: str, report: bool) -> bool:
    """Runs the demo in a schema of its own; returns whether every check passed."""
    with Queue(url, schema=SCHEMA) as queue, open_view() as view:
        queue.install()
        queue.configure(backoff_initial=timedelta(milliseconds=200))
        view.say(f"Installed schema {SCHEMA!r}, version {queue.schema_version()}.")
        reader = HistoryReader(queue)
        published = publish_all(queue)
        view.say(
            f"Published {published:,} messages in one call: first {NOISY:,} of a noisy tenant, "
            f"then {QUIET} of each of {QUIET_TENANTS} quiet tenants, {LIMITED} of a tenant limited "
            f"to {LIMIT} at once, {RATED} of a tenant limited to {RATE} per second, and one "
            "message that always fails."
        )
        codes = _work(url, queue, reader, view)
    results = summarize(reader.entries, WINDOW, RATE, BURST)
    _print_shares(results)
    good = _print_verdict(results, published, codes)
    if report:
        build_report(url)
    return good


def build_report(url: str) -> None:
    """The same history as a page. If it cannot be built, the verdict stays as it is."""
    print("Building a report: the history as Parquet, and tables over it ...")
    try:
        page = demo_report(url, SCHEMA, mkdtemp(prefix="laneway-demo-"), say=_step)
        print("Reading the same history with Spark, which takes some seconds to start ...")
        counted = attempts_by_outcome(url, SCHEMA)
        print("  " + ", ".join(f"{n:,} {outcome}" for outcome, n in counted.items()))
    except LanewayError as error:
        print(f"No report this time: {error}.")
    else:
        print(f"The report: {page}")


def _step(text: str) -> None:
    print(f"  {text}", flush=True)


def _work(url: str, queue: Queue, reader: HistoryReader, view: View) -> list[int]:
    with WorkerProcesses(url) as workers:
        view.say(f"Started {len(WORKERS)} worker processes of concurrency 10.")
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
    print(f"Of the first {WINDOW} starts:")
    for group, starts in sorted(results.first_starts.items()):
        label = f"{QUIET_TENANTS} quiet tenants" if group == "quiet" else f"the {group} tenant"
        print(f"  {label:<18} {starts:>4}  {'█' * round(starts / 10)}")
    print(f"  (the noisy tenant's {NOISY:,} messages were published first)")


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
            f"recovered: {killed} leases of the killed and {frozen} of the frozen worker expired; "
            f"{results.redelivered} messages were completed at a later attempt",
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
        ("the poison message is a dead letter", results.dead == 1),
        ("the other workers stopped gracefully", bool(codes) and not any(codes)),
    ]
    for text, good in checks:
        print(f"{'ok  ' if good else 'BAD '} {text}")
    return all(good for _, good in checks)
