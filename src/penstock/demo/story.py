"""The demo's story: a noisy tenant, many quiet ones, a limit, a crash, and the accounts."""

import signal
import subprocess
import sys
import time
from datetime import timedelta

import psycopg

from penstock import NewMessage, Queue

from .evidence import Evidence, gather, held_by

NOISY = 2000
QUIET_TENANTS = 30
QUIET = 10
LIMITED = 60
LIMIT = 2
WINDOW = 500
CONSUMERS = 3
PATIENCE = timedelta(seconds=60)


def tell(url: str) -> bool:
    """Runs the story on an empty database; says whether every promise held."""
    with Queue(url) as queue:
        queue.install()
        queue.configure(backoff_first=timedelta(milliseconds=200))
        _say(f"Installed schema 'penstock', version {queue.schema_version()}.")
        published = _publish(queue)
        _consume(queue, url)
    evidence = gather(url, published, "limited", WINDOW)
    _show_shares(evidence)
    return _verdict(evidence)


def _publish(queue: Queue) -> int:
    queue.channel("limited").limit(concurrency=LIMIT)
    messages = [NewMessage({"n": n}, channel="noisy") for n in range(NOISY)]
    messages += [
        NewMessage({"n": n}, channel=f"quiet-{tenant:02}")
        for tenant in range(QUIET_TENANTS)
        for n in range(QUIET)
    ]
    messages += [NewMessage({"n": n}, channel="limited") for n in range(LIMITED)]
    queue.publish_many(messages)
    _say(
        f"Published {len(messages):,} messages in one round trip: {NOISY:,} of a noisy tenant "
        f"first, {QUIET} each of {QUIET_TENANTS} quiet ones, {LIMITED} of a tenant limited to "
        f"{LIMIT} at once."
    )
    return len(messages)


def _consume(queue: Queue, url: str) -> None:
    command = [sys.executable, "-m", "penstock.demo.consumer", url]
    consumers = [subprocess.Popen([*command, f"consumer-{n}"]) for n in range(1, CONSUMERS + 1)]
    _say(f"Started {CONSUMERS} consumer processes.")
    try:
        _kill_one_at_work(url, consumers[0])
        _watch(queue, consumers[1:])
    finally:
        for consumer in consumers:
            if consumer.poll() is None:
                consumer.kill()
            consumer.wait()


def _kill_one_at_work(url: str, consumer: "subprocess.Popen[bytes]") -> None:
    """In the middle of a batch: with several messages held, it cannot be between two."""
    deadline = time.monotonic() + PATIENCE.total_seconds()
    with psycopg.connect(url, autocommit=True) as connection:
        while held_by(connection, "consumer-1") < 10 and time.monotonic() < deadline:
            time.sleep(0.002)
    consumer.send_signal(signal.SIGKILL)
    consumer.wait()
    _say("Killed consumer-1 with SIGKILL while it held leases; nobody tells the queue.")


def _watch(queue: Queue, consumers: "list[subprocess.Popen[bytes]]") -> None:
    deadline = time.monotonic() + PATIENCE.total_seconds()
    shown = 0.0
    while any(consumer.poll() is None for consumer in consumers) and time.monotonic() < deadline:
        if time.monotonic() - shown > 0.5:
            shown = time.monotonic()
            for n in queue.numbers():
                _say(
                    f"  waiting {n.waiting:>5}   leased {n.leased:>3}   scheduled {n.scheduled:>3}"
                )
        time.sleep(0.05)


def _show_shares(evidence: Evidence) -> None:
    _say(f"Of the first {WINDOW} starts:")
    for name, starts in evidence.first_starts:
        label = f"{QUIET_TENANTS} quiet tenants" if name == "quiet" else f"the {name} tenant"
        _say(f"  {label:<18} {starts:>4}  {'█' * round(starts / 10)}")
    _say(f"  (the noisy tenant had {NOISY:,} waiting before any quiet tenant had one)")


def _verdict(evidence: Evidence) -> bool:
    quiet = dict(evidence.first_starts).get("quiet", 0)
    checks = [
        (
            f"nothing lost: published {evidence.published:,} = "
            f"completed {evidence.completed:,} + dead {evidence.dead}",
            evidence.published == evidence.completed + evidence.dead,
        ),
        (f"nothing completed twice: {evidence.twice}", evidence.twice == 0),
        (
            f"the crash was recovered: {evidence.expired} leases ran out, "
            f"{evidence.redelivered} messages were done by another process",
            0 < evidence.redelivered <= evidence.expired,
        ),
        (
            f"the limit held: at most {evidence.most_at_once} of {LIMIT} at once",
            0 < evidence.most_at_once <= LIMIT,
        ),
        (
            f"fair: all {quiet} messages of the quiet tenants were among the first {WINDOW} starts",
            quiet == QUIET_TENANTS * QUIET,
        ),
    ]
    for text, good in checks:
        _say(f"{'ok  ' if good else 'BAD '} {text}")
    return all(good for _, good in checks)


def _say(text: str) -> None:
    print(text, flush=True)
