"""Does a big tenant stand in the way of small ones? `python -m benchmarks.fairness`"""

import argparse
from collections import Counter
from dataclasses import dataclass
from statistics import median

import psycopg

from laneway import NewMessage, Policy, Queue

from .bench import PAYLOAD, Bench, running, say
from .report import Table, show, verdict
from .shares import counts, jain, longest_wait, starts

JAIN = 0.99
ROUNDS = 1
SHARE = 0.02
WEIGHTS = (1, 2, 4, 8)
LOUD = (2, 16, 100)
BATCHES = (1, 8, 50)
QUANTUM = 10
_CHUNK = 10_000


@dataclass(frozen=True, slots=True)
class Size:
    bulk: int = 100_000
    one_by_one: int = 20_000
    quiet: int = 999
    each: int = 10
    weighted: int = 30_000
    singles: int = 10_000
    repeats: int = 5


QUICK = Size(bulk=20_000, one_by_one=2_000, weighted=15_000, singles=3_000, repeats=3)


@dataclass(frozen=True, slots=True)
class Spread:
    """How the first starts were spread over one loud channel and many quiet ones."""

    starts: int
    index: float
    rounds: int
    loud: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller backlog")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    with running() as bench:
        tables = measure(bench, QUICK if options.quick else Size())
    show(tables, as_json=options.json)


def measure(bench: Bench, size: Size) -> list[Table]:
    return [_spreads(bench, size), _hidden(bench, size), _weights(bench, size)]


def spread(url: str, schema: str, size: Size, *, one_by_one: bool) -> Spread:
    """The loud channel publishes all it has, then come the quiet ones."""
    quiet = [f"quiet-{number}" for number in range(size.quiet)]
    with Queue(url, schema=schema) as queue:
        queue.install()
        if one_by_one:
            _publish_singly(queue, url, ["loud"] * size.one_by_one)
        else:
            _publish(queue, ["loud"] * size.bulk)
        _publish(queue, quiet * size.each)
        claims = starts(queue, (size.quiet + 1) * size.each)
    got = counts(claims)
    index = jain([got[channel] for channel in ["loud", *quiet]])
    return Spread(got.total(), index, longest_wait(claims, quiet), got["loud"])


def starts_before_quiet(url: str, schema: str, loud: int, singles: int, batch: int) -> int:
    """Loud channels publish in turn, message by message; a quiet one comes last, with one."""
    names = [f"loud-{number % loud}" for number in range(singles)]
    with Queue(url, schema=schema) as queue:
        queue.install()
        _publish_singly(queue, url, [*names, "quiet"])
        before = 0
        while "quiet" not in (served := [message.channel for message in queue.claim(batch)]):
            before += len(served)
    return before + served.index("quiet")


def shares(url: str, schema: str, messages: int, each: int) -> dict[int, float]:
    """Which part of the starts each weight got, with so many channels ``each``, all of which have
    more than enough to do."""
    weights = {f"{weight}-{number}": weight for number in range(each) for weight in WEIGHTS}
    with Queue(url, schema=schema) as queue:
        queue.install()
        queue.set_policies({name: Policy(weight=weight) for name, weight in weights.items()})
        enough = int(messages / each * wanted(max(WEIGHTS)) * 1.1) + 100
        _publish(queue, [*weights] * enough)
        got = counts(starts(queue, messages))
    total: Counter[int] = Counter()
    for channel, number in got.items():
        total[weights[channel]] += number
    return {weight: total[weight] / messages for weight in WEIGHTS}


def wanted(weight: int) -> float:
    return weight / sum(WEIGHTS)


def _spreads(bench: Bench, size: Size) -> Table:
    columns = ["the loud one's backlog", "starts", "Jain", "target", "", "rounds waited", "most"]
    title = f"One loud channel and {size.quiet} quiet ones with {size.each} each: the first starts"
    table = Table(title, [*columns, " "])
    for singly, backlog in ((False, size.bulk), (True, size.one_by_one)):
        what = f"{backlog:,} {'one by one' if singly else 'in bulk'}"
        say(what)
        with bench.database(installed=False) as url:
            found = spread(url, "laneway", size, one_by_one=singly)
        index = (round(found.index, 4), JAIN, verdict(found.index, JAIN))
        rounds = (found.rounds, ROUNDS, verdict(-found.rounds, -ROUNDS))
        table.add(what, found.starts, *index, *rounds)
    return table


def _hidden(bench: Bench, size: Size) -> Table:
    title = f"{size.singles:,} single messages of loud channels, then one of a quiet channel"
    columns = ["loud channels", "batch", "starts before", "most of all runs", "one round", ""]
    table = Table(title, columns)
    for loud in LOUD:
        for batch in BATCHES:
            say(f"{loud} loud channels, claims of {batch}")
            found = []
            for _ in range(size.repeats):
                with bench.database(installed=False) as url:
                    args = (url, "laneway", loud, size.singles, batch)
                    found.append(starts_before_quiet(*args))
            usual, allowed = median(found), loud * QUANTUM + batch
            table.add(loud, batch, usual, max(found), allowed, verdict(-usual, -allowed))
    return table


def _weights(bench: Bench, size: Size) -> Table:
    title = f"Shares by weight of {size.weighted:,} starts"
    table = Table(title, ["channels", "weight", "share %", "wanted %", "off %", ""])
    for each in (1, 3):
        say(f"shares by weight, {each} channels each")
        with bench.database(installed=False) as url:
            found = shares(url, "laneway", size.weighted, each)
        for weight, share in found.items():
            off = abs(share / wanted(weight) - 1)
            said = verdict(-off, -SHARE)
            channels = each * len(WEIGHTS)
            table.add(channels, weight, share * 100, wanted(weight) * 100, off * 100, said)
    return table


def _publish(queue: Queue, channels: list[str]) -> None:
    for first in range(0, len(channels), _CHUNK):
        some = channels[first : first + _CHUNK]
        queue.publish_many([NewMessage(PAYLOAD, channel) for channel in some])


def _publish_singly(queue: Queue, url: str, channels: list[str]) -> None:
    """One statement each; one commit, to save time."""
    with psycopg.connect(url) as connection:
        for channel in channels:
            queue.publish(PAYLOAD, channel=channel, connection=connection)


if __name__ == "__main__":
    main()
