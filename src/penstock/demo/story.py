"""The demo's story: a noisy tenant, many quiet ones, limits, troubles, and the accounts."""

import time
from datetime import timedelta
from tempfile import mkdtemp

from penstock import PenstockError, Queue
from penstock.lake import demo_report

from .cast import (
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
from .evidence import Evidence, Reader, weigh
from .troop import WORKERS, Troop
from .view import View, open_view

WINDOW = 500
PATIENCE = 90.0  # seconds until the demo gives up; it takes a fifth of that
_LOOK_EVERY = 0.15


def tell(url: str, report: bool) -> bool:
    """Runs the story in a schema of its own; says whether every promise held."""
    with Queue(url, schema=SCHEMA) as queue, open_view() as view:
        queue.install()
        queue.configure(backoff_first=timedelta(milliseconds=200))
        view.say(f"Installed schema {SCHEMA!r}, version {queue.schema_version()}.")
        reader = Reader(queue)
        published = publish_all(queue)
        view.say(
            f"Published {published:,} messages in one call: {NOISY:,} of a noisy tenant first, "
            f"{QUIET} each of {QUIET_TENANTS} quiet ones, {LIMITED} of one limited to {LIMIT} at "
            f"once, {RATED} of one limited to {RATE} a second, and one that can never be done."
        )
        codes = _work(url, queue, reader, view)
    evidence = weigh(reader.entries, WINDOW, RATE, BURST)
    _show_shares(evidence)
    good = _verdict(evidence, published, codes)
    if report:
        report_on(url)
    return good


def report_on(url: str) -> None:
    """The same history once more, as a page to look at. Not having one is not a bad verdict."""
    print("Now the lake: the history as Parquet, and a report on Spark (half a minute) ...")
    try:
        page = demo_report(url, SCHEMA, mkdtemp(prefix="penstock-demo-"), say=_step)
    except PenstockError as error:
        print(f"No report this time: {error}.")
    else:
        print(f"The report: {page}")


def _step(text: str) -> None:
    print(f"  {text}", flush=True)


def _work(url: str, queue: Queue, reader: Reader, view: View) -> list[int]:
    with Troop(url) as troop:
        view.say(f"Started {len(WORKERS)} worker processes, ten messages at a time each.")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            troop.make_trouble(queue, view.say)
            reader.read()
            numbers = queue.channel_numbers(limit=100)
            view.show(numbers, reader.entries)
            idle = not any(n.waiting or n.leased or n.scheduled for n in numbers)
            if idle and troop.at_peace:
                break
            time.sleep(_LOOK_EVERY)
        codes = troop.dismiss()
        reader.read()
        return codes


def _show_shares(evidence: Evidence) -> None:
    print(f"Of the first {WINDOW} starts:")
    for group, starts in sorted(evidence.first_starts.items()):
        label = f"{QUIET_TENANTS} quiet tenants" if group == "quiet" else f"the {group} tenant"
        print(f"  {label:<18} {starts:>4}  {'█' * round(starts / 10)}")
    print(f"  (the noisy tenant had {NOISY:,} waiting before any quiet tenant had one)")


def _verdict(evidence: Evidence, published: int, codes: list[int]) -> bool:
    quiet = evidence.first_starts.get("quiet", 0)
    killed, frozen = (evidence.expired.get(name, 0) for name in WORKERS[:2])
    checks = [
        (
            f"nothing lost: published {published:,} = "
            f"completed {evidence.completed:,} + dead {evidence.dead}",
            published == evidence.completed + evidence.dead,
        ),
        (f"nothing completed twice: {evidence.twice}", evidence.twice == 0),
        (
            f"recovered: leases ran out of the killed worker {killed}, of the frozen one {frozen}; "
            f"{evidence.redelivered} messages were done at a later attempt",
            killed > 0 and evidence.redelivered > 0,
        ),
        (
            f"the limit held: at most {evidence.most_at_once} of {LIMIT} at once",
            0 < evidence.most_at_once <= LIMIT,
        ),
        (
            f"the rate held: never more than {BURST} + {RATE} a second in any window",
            evidence.rate_excess <= 0,
        ),
        (
            f"fair: all {quiet} messages of the quiet tenants were among the first {WINDOW} starts",
            quiet == QUIET_TENANTS * QUIET,
        ),
        ("the poison message is a dead letter", evidence.dead == 1),
        ("the other workers stopped in good order", bool(codes) and not any(codes)),
    ]
    for text, good in checks:
        print(f"{'ok  ' if good else 'BAD '} {text}")
    return all(good for _, good in checks)
