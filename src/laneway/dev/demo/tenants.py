"""The demo's tenants and their messages."""

from datetime import timedelta

from laneway import NewMessage, Queue

SCHEMA = "laneway_demo"
URL = "LANEWAY_DEMO_URL"  # in the environment of its workers
LEASE = timedelta(seconds=2)
NOISY = 3000
QUIET_TENANTS = 30
QUIET = 10
LIMITED, LIMIT = 60, 2
RATED, RATE, BURST = 40, 10, 5
POISON_ATTEMPTS = 3
GROUPS = ("noisy", "quiet", "limited", "rated", "poison")


def group_of(channel: str) -> str:
    return "quiet" if channel.startswith("quiet-") else channel


def publish_all(queue: Queue) -> int:
    """Publishes all messages in one call, the noisy tenant's first; returns how many."""
    queue.channel("limited").limit(concurrency=LIMIT)
    queue.channel("rated").limit(rate=RATE, burst=BURST)
    messages = [_job("noisy", n) for n in range(NOISY)]
    messages += [_job(f"quiet-{t:02}", n) for t in range(QUIET_TENANTS) for n in range(QUIET)]
    messages += [_job("limited", n) for n in range(LIMITED)]
    messages += [_job("rated", n) for n in range(RATED)]
    messages += [NewMessage({}, channel="poison", kind="poison", max_attempts=POISON_ATTEMPTS)]
    queue.publish_many(messages)
    return len(messages)


def _job(channel: str, number: int) -> NewMessage:
    return NewMessage({"n": number}, channel=channel, kind="job")
