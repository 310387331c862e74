"""Checks a chaos run: reads the ledgers and a dump of the tables, returns a verdict.

Standard library only, and nothing of the package whose guarantees it checks: it can be read, copied
and run by itself. ``python checker.py FOLDER`` reads ``*.jsonl`` and ``dump.json`` from the folder,
prints the verdict as JSON and exits with 1 if a rule was broken.

Times in the ledgers and in the tables are of the same machine. The database reads its clock a
moment before others can see the change, so times are compared with a tolerance.
"""

import json
import sys
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

TOLERANCE = 0.25  # seconds, when times of the ledger and of the tables are compared
ANSWER = 7.0  # seconds that a consumer waits for an answer on a connection of its own
CANCELLED_WITHIN = 25.0  # seconds: a worker learns of a request within 10
NEVER = float("inf")
PARKED = 1e9  # seconds: only what waits behind another with its key is scheduled so late
AFTER = 10.0  # seconds after a fault in which calls may still fail because of it
SHOWN = 5  # violations of each rule
SPANS = {"minute": 60_000_000, "hour": 3_600_000_000}  # microseconds
BOUNDS = [
    round(seconds * 1e6) for seconds in (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 3600, 21600)
]  # of the buckets of times, each of which belongs to the bucket below it

Record = dict[str, Any]
Violations = Iterator[str]

OUTCOMES = {
    "complete": {"completed"},
    "defer": {"deferred", "retried"},
    "fail": {"failed"},
    "give_back": {"given_back"},
}


ATTEMPTS = ("completed", "retried", "failed", "expired", "deferred", "given_back")
COUNTED = (*ATTEMPTS, "cancelled", "lapsed", "redriven", "discarded")
"""Outcomes that the figures by minute count."""


class ClaimRecord(NamedTuple):
    """One lease, from the history or from what was still leased at the end."""

    id: int
    fence: int
    channel: str
    worker: str
    attempt: int
    claimed: float
    ended: float
    outcome: str
    dead: bool


@dataclass
class RunRecords:
    """Everything that was recorded, with indexes."""

    lines: list[Record]
    dump: dict[str, Any]

    def __post_init__(self) -> None:
        self.lines.sort(key=lambda line: line["t"])
        self.by_what: dict[str, list[Record]] = defaultdict(list)
        for line in self.lines:
            self.by_what[line["what"]].append(line)
        self.tried = {line["n"]: line for line in self.by_what["publish_tried"]}
        self.published = {
            line["n"]: line
            for line in self.by_what["publish_acknowledged"]
            if line["status"] == "published"
        }
        self.answered = {line["n"]: line for line in self.by_what["publish_acknowledged"]}
        self.replacing = {
            line["key"] for line in self.tried.values() if line.get("mode", "keep") != "keep"
        }
        """Keys under which messages replace others."""
        self.undone = {line["n"] for line in self.by_what["publish_rolled_back"]}
        self.name_of = {line["id"]: n for n, line in self.published.items()}
        self.name_of |= {line["id"]: line["n"] for line in self.by_what["start"]}
        self.waiting = {row["id"]: row for row in self.dump["messages"]}
        self.dead = {row["id"]: row for row in self.dump["dead"]}
        self.ends: dict[int, list[Record]] = defaultdict(list)
        self.rows: dict[int, list[Record]] = defaultdict(list)
        for row in sorted(self.dump["history"], key=lambda row: (row["ended_at"], row["id"])):
            self.rows[row["message_id"]].append(row)
            if row["terminal"]:
                self.ends[row["message_id"]].append(row)
        self.known = {*self.waiting, *self.dead, *self.rows}
        self.told = {
            (line["id"], line["fence"]): line["t"]
            for line in self.by_what["settle_accepted"] + self.by_what["settled"]
        }
        self.told |= {(line["id"], None): line["t"] for line in self.by_what["cancel_answered"]}
        self.claims = sorted(self._claims(), key=lambda claim: (claim.claimed, claim.fence))
        self.claims_of: dict[int, list[ClaimRecord]] = defaultdict(list)
        self.claims_in: dict[str, list[ClaimRecord]] = defaultdict(list)
        self.claim_at: dict[tuple[int, int], list[ClaimRecord]] = defaultdict(list)
        for claim in self.claims:
            self.claims_of[claim.id].append(claim)
            self.claims_in[claim.channel].append(claim)
            self.claim_at[claim.id, claim.fence].append(claim)

    def _claims(self) -> Iterator[ClaimRecord]:
        for row in self.dump["history"]:
            if row["claimed_at"] is not None and row["outcome"] != "stale":
                yield ClaimRecord(
                    row["message_id"], row["fence"], row["channel"], row["worker"] or "",
                    row["attempt"], row["claimed_at"], row["ended_at"], row["outcome"], row["dead"],
                )  # fmt: skip
        for row in self.dump["messages"]:
            if row["state"] == "leased":
                yield ClaimRecord(
                    row["id"], row["fence"], row["channel"], row["worker"] or "", row["attempt"],
                    row["claimed_at"], NEVER, "leased", False,
                )  # fmt: skip

    def gone_at(self, line: Record) -> float:
        """When the published message ended or became a dead letter, redriven or not."""
        ends = [row["ended_at"] for row in self.rows[line["id"]] if row["terminal"] or row["dead"]]
        return min(ends, default=NEVER)

    def seen_gone(self, line: Record) -> float:
        """By when others could see that it had ended or was a dead letter."""
        ends = [row for row in self.rows[line["id"]] if row["terminal"] or row["dead"]]
        return min(map(self.seen_ended, ends), default=NEVER)

    def channel_of(self, id: int) -> str | None:
        """Of a message that was found in the database."""
        rows = [*self.rows[id], self.waiting.get(id), self.dead.get(id)]
        return next((row["channel"] for row in rows if row and "channel" in row), None)

    def ended_at(self, id: int) -> float:
        """When the message ended; NEVER while it waits, is leased or is a dead letter."""
        return self.ends[id][0]["ended_at"] if self.ends[id] else NEVER

    def seen_ended(self, row: Record) -> float:
        """By when others could see that end for certain: its time is that of the write, and the
        commit comes later if its writer was stopped or waited for a lock."""
        ended: float = row["ended_at"]
        spans: list[float] = [
            line["t"] + line["span"]
            for line in self.by_what["fault"]
            if line["kind"] in ("stop", "lock", "hog", "stall", "silent")
            # A cancelled message has no worker. Who fell silent may hold what others wait for.
            and (
                row["worker"] is None
                or line["kind"] == "silent"
                or line["target"] in ("*", row["worker"])
            )
            and line["t"] <= ended + TOLERANCE
        ]
        return max([ended, *spans])

    def told_ended(self, row: Record) -> float:
        """When its holder was told of that end, which was committed by then; or, if it did not live
        to hear of it, by when others could see it. On a busy machine a commit comes long after the
        time that is written."""
        told: float | None = self.told.get((row["message_id"], row["fence"]))
        return told if told is not None else self.seen_ended(row) + AFTER

    def committed(self) -> set[int]:
        """The messages that must exist: acknowledged, or seen by a handler."""
        return {line["id"] for line in self.published.values()} | {
            line["id"] for line in self.by_what["start"]
        }


def lost(records: RunRecords) -> Violations:
    """Acknowledged, but neither waiting, leased, dead nor ended."""
    yield from [
        f"message {id} ({records.name_of.get(id)}) does not exist"
        for id in sorted(records.committed())
        if id not in records.waiting and id not in records.dead and not records.ends[id]
    ]


def two_states(records: RunRecords) -> Violations:
    """A message in more than one state, or ended more than once."""
    for id in {*records.waiting, *records.dead, *records.ends}:
        states = (id in records.waiting) + (id in records.dead) + len(records.ends[id])
        if states > 1:
            yield f"message {id} is in {states} states at once"
    rows = Counter(row["id"] for row in records.dump["messages"] + records.dump["dead"])
    yield from [f"message {id} is stored {n} times" for id, n in rows.items() if n > 1]


def unexpected(records: RunRecords) -> Violations:
    """A message that nobody published, or that was rolled back or refused, and exists."""
    # Some databases reuse an id that was rolled back for another message. Its publisher may have
    # been killed before it knew, and then only the channel tells them apart.
    never = {
        line["id"]
        for line in records.by_what["publish_rolled_back"]
        if line.get("id")
        and records.name_of.get(line["id"], line["n"]) == line["n"]
        and records.channel_of(line["id"]) in (None, records.tried[line["n"]]["channel"])
    }
    yield from [f"message {id} was rolled back and exists" for id in sorted(never & records.known)]
    refused = {line["n"] for line in records.by_what["publish_refused"]} | records.undone
    for line in records.by_what["start"]:
        if line["n"] not in records.tried:
            yield f"message {line['id']} ({line['n']}) was never published"
        elif line["n"] in refused:
            yield f"message {line['id']} ({line['n']}) was refused or rolled back"


def mixed_up(records: RunRecords) -> Violations:
    """A publisher got the id of another message, or one publish became two messages."""
    ids: dict[str, set[int]] = defaultdict(set)
    replaced = [line for line in records.answered.values() if line["status"] == "replaced"]
    for line in [*records.published.values(), *replaced, *records.by_what["start"]]:
        ids[line["n"]].add(line["id"])
    yield from [f"{n} is message {sorted(found)}" for n, found in ids.items() if len(found) > 1]
    names: dict[int, set[str]] = defaultdict(set)
    for line in [*records.published.values(), *records.by_what["start"]]:
        names[line["id"]].add(line["n"])
    for id, found in names.items():
        # One that was replaced has several, all with its key.
        places = {_key(records, n) or n for n in found}
        if len(found if places - records.replacing else places) > 1:
            yield f"message {id} is {sorted(found)}"


def _key(records: RunRecords, n: str) -> str | None:
    key: str | None = records.tried.get(n, {}).get("key")
    return key


def stuck(records: RunRecords) -> Violations:
    """Still there although every due message should have ended."""
    now = records.dump["taken_at"]
    yield from [
        f"message {row['id']} in {row['channel']} is {row['state']} {now - row['due']:.1f} s late"
        for row in records.dump["messages"]
        if row["due"] <= now - TOLERANCE
    ]
    behind, others = Counter[str](), Counter[str]()
    for row in records.dump["messages"]:
        (behind if row["due"] > now + PARKED else others)[row["channel"]] += 1
    for channel, count in behind.items():
        if count > others[channel]:
            yield f"{channel}: {count} wait behind others, of which there are {others[channel]}"


def history(records: RunRecords) -> Violations:
    """A start without exactly one end in the history, unless its lease is still held."""
    yield from [
        f"message {id} has {len(claims)} history entries for lease {fence}"
        for (id, fence), claims in records.claim_at.items()
        if len(claims) > 1
    ]
    for line in records.by_what["start"]:
        if not records.claim_at.get((line["id"], line["fence"])):
            yield f"message {line['id']}: lease {line['fence']} was started and has no end"


def unexplained_duplicates(records: RunRecords) -> Violations:
    """A second start although the first neither expired, failed, was deferred nor given back."""
    starts = Counter((line["id"], line["fence"]) for line in records.by_what["start"])
    yield from [
        f"message {i}: lease {f} was started {n} times" for (i, f), n in starts.items() if n > 1
    ]
    for id, claims in records.claims_of.items():
        for first, second in pairwise(claims):
            if first.fence != second.fence and not _explained(records, first, second):
                yield (
                    f"message {id}: lease {second.fence} began after {first.fence} was "
                    f"{first.outcome}, {second.claimed - first.ended:+.3f} s"
                )


def _explained(records: RunRecords, first: ClaimRecord, second: ClaimRecord) -> bool:
    if (
        first.outcome in ("completed", "cancelled", "leased")
        or first.ended > second.claimed + TOLERANCE
    ):
        return False
    redriven = (row for row in records.rows[first.id] if row["outcome"] == "redriven")
    return not first.dead or any(
        first.ended - TOLERANCE <= row["ended_at"] <= second.claimed + TOLERANCE for row in redriven
    )


def fences(records: RunRecords) -> Violations:
    """A claim that did not raise the fence, or the attempt (which a give-back keeps)."""
    for id, claims in records.claims_of.items():
        for first, second in pairwise(claims):
            step = 0 if first.outcome == "given_back" else 1
            if second.fence <= first.fence:
                yield f"message {id}: fence {second.fence} came after {first.fence}"
            elif second.attempt != first.attempt + step and first.outcome != "leased":
                yield (
                    f"message {id}: attempt {second.attempt} came after {first.attempt}, "
                    f"which was {first.outcome}"
                )


def stale_accepted(records: RunRecords) -> Violations:
    """A write accepted from a consumer whose lease had ended otherwise."""
    for line in records.by_what["settle_accepted"]:
        ends = {claim.outcome for claim in records.claim_at.get((line["id"], line["fence"]), [])}
        if not ends & OUTCOMES[line["verb"]]:
            yield (
                f"message {line['id']}: {line['verb']} under lease {line['fence']} was accepted, "
                f"the history says {', '.join(sorted(ends)) or 'nothing'}"
            )
    for line in records.by_what["extended"]:
        for claim in records.claim_at.get((line["id"], line["fence"]), []):
            if claim.ended < line["tried"] - TOLERANCE:
                yield f"message {line['id']}: lease {line['fence']} was extended after its end"


def completed_unworked(records: RunRecords) -> Violations:
    """A completion that the holder of the lease never asked for."""
    asked = {(line["id"], line["fence"]) for line in records.by_what["settle_tried"]}
    yield from [
        f"message {claim.id}: lease {claim.fence} of {claim.worker} was completed unasked"
        for claim in records.claims
        if claim.outcome == "completed" and (claim.id, claim.fence) not in asked
    ]


def wrongly_lost(records: RunRecords) -> Violations:
    """A consumer was told that its lease is lost while it was alive."""
    for line in records.by_what["settle_lost"]:
        for claim in records.claim_at.get((line["id"], line["fence"]), []):
            if claim.ended > line["t"] + TOLERANCE:
                yield f"message {line['id']}: lease {line['fence']} was called lost while alive"


def over_limit(records: RunRecords) -> Violations:
    """A claim that exceeded the channel's concurrency limit."""
    for channel, terms in _policies(records).items():
        for claim in records.claims_in[channel]:
            limit = _highest(terms, "concurrency", claim.claimed)
            held = [c for c in records.claims_in[channel] if _overlap(c, claim)]
            if len(held) > limit:
                over = min(c.ended for c in held) - claim.claimed
                yield (
                    f"{channel}: {len(held)} leases at once, {limit:.0f} allowed, "
                    f"for {min(over, 1e6) * 1000:.0f} ms"
                )


def _overlap(other: ClaimRecord, claim: ClaimRecord) -> bool:
    """Whether the other was held when this one was claimed, for longer than the tolerance."""
    return (
        (other.claimed, other.fence, other.id) <= (claim.claimed, claim.fence, claim.id)
        and other.ended > claim.claimed + TOLERANCE
        and claim.ended > claim.claimed + TOLERANCE
    )


class PolicyPeriod(NamedTuple):
    """A policy and when it may have applied: from its request until the next one was in force."""

    since: float
    until: float
    concurrency: float
    rate: float
    burst: float
    backlog: float


def _policies(records: RunRecords) -> dict[str, list[PolicyPeriod]]:
    known = {(line["by"], line["number"]): line["t"] for line in records.by_what["policy_set"]}
    asked: dict[str, list[Record]] = defaultdict(list)
    for line in records.by_what["policy_tried"]:
        asked[line["channel"]].append(line)
    return {channel: list(_policy_periods(lines, known)) for channel, lines in asked.items()}


def _policy_periods(
    lines: list[Record], known: dict[tuple[str, int], float]
) -> Iterator[PolicyPeriod]:
    """The first period is that of the channel before any limit was set."""
    for place, line in enumerate([{"t": -NEVER}, *lines]):
        sure = (known.get((later["by"], later["number"])) for later in lines[place:])
        until = min((moment for moment in sure if moment is not None), default=NEVER)
        numbers = (line.get(name) for name in PolicyPeriod._fields[2:])
        yield PolicyPeriod(
            line["t"] - TOLERANCE,
            until + TOLERANCE,
            *(NEVER if n is None else float(n) for n in numbers),
        )


def _highest(terms: list[PolicyPeriod], name: str, moment: float) -> float:
    held = [getattr(t, name) for t in terms if t.since <= moment <= t.until]
    return max(held, default=NEVER)


def rate_excess(records: RunRecords) -> Violations:
    """More starts in a window than burst + window x rate, where the policy never changed."""
    for channel, terms in _policies(records).items():
        if len(terms) == 2 and terms[1].rate < NEVER:
            excess = _excess([c.claimed for c in records.claims_in[channel]], terms[1])
            if excess > 0:
                yield f"{channel}: {excess:.1f} starts too many in a window"


def shared_limits(records: RunRecords) -> Violations:
    """More leases at once behind a limit that channels share, or more starts than its rate lets."""
    for line in records.by_what["limit_set"]:
        name, rate = line["name"], line.get("rate")
        claims = list(_behind(records, name))
        running = _from_start(records, claims)
        for claim in running:
            held = sum(_overlap(other, claim) for other in running)
            if held > line.get("concurrency", NEVER):
                yield f"limit {name}: {held} leases at once, {line['concurrency']} allowed"
        if rate is not None:
            terms = PolicyPeriod(0, NEVER, NEVER, rate, line["burst"], NEVER)
            if (excess := _excess([claim.claimed for claim in claims], terms)) > 0:
                yield f"limit {name}: {excess:.1f} starts too many in a window"


def _behind(records: RunRecords, name: str) -> Iterator[ClaimRecord]:
    """What started behind a limit. A claim puts back what has to wait for it; or lets the leases
    run out, if it was cut off before it could."""
    started = {(line["id"], line["fence"]) for line in records.by_what["start"]}
    named = {n for n, tried in records.tried.items() if name in tried.get("limits", ())}
    for claim in records.claims:
        waited = claim.outcome in ("given_back", "expired")
        if waited and (claim.id, claim.fence) not in started:
            continue
        if records.name_of.get(claim.id) in named:
            yield claim


def _from_start(records: RunRecords, claims: list[ClaimRecord]) -> list[ClaimRecord]:
    """Each since it was started: a claim asks the limits after it has taken the leases, and on a
    busy machine long after."""
    begun = {(line["id"], line["fence"]): line["t"] for line in records.by_what["start"]}
    return [c._replace(claimed=max(c.claimed, begun.get((c.id, c.fence), 0.0))) for c in claims]


def breakers(records: RunRecords) -> Violations:
    """A start behind a limit whose breaker, which any failure opens, is open; or two at once before
    one of those that were let through has completed."""
    rows = {
        (row["message_id"], row["fence"]): row for some in records.rows.values() for row in some
    }
    for line in records.by_what["limit_set"]:
        if "pause" not in line:
            continue
        claims = list(_behind(records, line["name"]))
        failed = [claim for claim in claims if claim.outcome in ("retried", "failed", "expired")]
        for end in failed:
            # What ran when another one opened it says nothing.
            near = [f for f in failed if end.claimed - TOLERANCE < f.ended < end.ended + TOLERANCE]
            if len(near) > 1:
                continue
            told = records.told_ended(rows[end.id, end.fence]) + TOLERANCE
            until = end.ended + line["pause"]
            later = [claim for claim in claims if claim.claimed > max(told, end.ended)]
            for claim in later:
                if claim.claimed < until - TOLERANCE:
                    yield f"limit {line['name']}: {claim.id} started while its breaker was open"
            done = ("completed", "deferred")
            closed = min(
                (
                    c.ended
                    for c in claims
                    if c.outcome in done and c.claimed > end.ended - TOLERANCE
                ),
                default=NEVER,
            )
            probes = [c for c in _from_start(records, later) if c.claimed < closed - TOLERANCE]
            for claim in probes:
                if sum(_overlap(other, claim) for other in probes) > 1:
                    yield f"limit {line['name']}: {claim.id} beside another that was let through"


def _excess(times: list[float], terms: PolicyPeriod) -> float:
    """The worst window, in one pass: the one that ends here starts where k - rate x t was least."""
    worst, least = 0.0, NEVER
    for k, moment in enumerate(sorted(times)):
        level = k - terms.rate * moment
        least = min(least, level)
        worst = max(worst, level - least + 1 - terms.burst - 0.002 * terms.rate)
    return worst


def backlog(records: RunRecords) -> Violations:
    """A message accepted by a full channel, or refused by a channel with room."""
    spans: dict[str, list[tuple[Record, float, float]]] = defaultdict(list)
    for n, line in records.published.items():
        spans[records.tried[n]["channel"]].append(
            (line, records.tried[n]["t"], records.gone_at(line))
        )
    seen = {line["id"]: records.seen_gone(line) for line in records.published.values()}
    # A publisher that was killed before it got the result may have published too.
    unsure = records.tried.keys() - records.published.keys() - records.undone
    unsure -= {line["n"] for line in records.by_what["publish_refused"]}
    for channel, terms in _policies(records).items():
        if len(terms) != 2 or terms[1].backlog == NEVER:
            continue
        most, found = terms[1].backlog, spans[channel]
        for line, tried, _ in found:
            there = [
                1 for other, _, gone in found if other["t"] < tried and gone > line["t"] + TOLERANCE
            ]
            if len(there) >= most:
                yield f"{channel}: message {line['id']} was accepted beside {len(there)} others"
        maybe = sum(records.tried[n]["channel"] == channel for n in unsure)
        for line in records.by_what["publish_refused"]:
            asked = records.tried[line["n"]]
            there = [
                1
                for other, begun, _ in found
                if begun < line["t"] and seen[other["id"]] > asked["t"] - TOLERANCE
            ]
            if asked["channel"] == channel and len(there) + maybe < most:
                yield f"{channel}: {line['n']} was refused beside only {len(there)} others"


def priorities(records: RunRecords) -> Violations:
    """Lower priorities started before waiting higher ones more often than the allowed 1 in 10."""
    ranked: dict[str, list[tuple[ClaimRecord, Record, Record]]] = defaultdict(list)
    for n, line in records.published.items():
        claims = records.claims_of[line["id"]]
        if records.tried[n].get("priority") is not None and claims and (
            _key(records, n) not in records.replacing  # which give it other priorities
        ):  # fmt: skip
            first = min(claims, key=lambda claim: claim.fence)
            ranked[first.channel].append((first, line, records.tried[n]))
    for channel, found in ranked.items():
        if channel in _policies(records) and len({tried["priority"] for _, _, tried in found}) > 1:
            passed = sum(any(_passed(low, high) for high in found) for low in found)
            if passed > 3 + len(found) / 5:
                yield (
                    f"{channel}: {passed} of {len(found)} started before a waiting one of higher "
                    "priority"
                )


def _passed(
    low: tuple[ClaimRecord, Record, Record], high: tuple[ClaimRecord, Record, Record]
) -> bool:
    """Whether both were waiting: published together, or the higher one well before."""
    together = low[2]["t"] <= high[2]["t"] + TOLERANCE and low[1]["by"] == high[1]["by"]
    together = together and abs(low[1]["t"] - high[1]["t"]) < 0.01
    return (
        low[2]["priority"] < high[2]["priority"]
        and low[0].fence < high[0].fence
        and (together or high[1]["t"] < low[0].claimed - TOLERANCE)
    )


def too_early(records: RunRecords) -> Violations:
    """A start before the message was due."""
    for n, line in records.published.items():
        for claim in records.claims_of[line["id"]][:1]:
            early = _first_due(records, records.tried[n], claim.claimed) - claim.claimed
            if early > 0.01 and not _hurried(records, claim.id, line["t"], claim.claimed):
                yield f"message {claim.id} was claimed {early:.2f} s before it was due"
    delays = {
        (line["id"], line["fence"]): line.get("delay", 0.0)
        for line in records.by_what["settle_tried"]
        if line["verb"] == "defer"
    }
    # A debounce gives what waits for its retry another time.
    moved = {
        line["id"]
        for n, line in records.answered.items()
        if records.tried[n].get("mode") == "debounce"
    }
    moved |= {
        line["id"]
        for line in records.by_what["start"]
        if records.tried.get(line["n"], {}).get("mode") == "debounce"
    }
    for id, claims in records.claims_of.items():
        for first, second in pairwise([] if id in moved else claims):
            early = first.ended + delays.get((first.id, first.fence), 0.0) - second.claimed
            # A dead letter waits only for its redrive.
            if first.outcome in ("deferred", "retried") and not first.dead and (
                early > 0.01 and not _hurried(records, first.id, first.ended, second.claimed)
            ):  # fmt: skip
                yield f"message {first.id} was claimed {early:.2f} s before it was due"


def _first_due(records: RunRecords, tried: Record, until: float) -> float:
    """The earliest time that it had until then: a debounce may set an earlier one."""
    due: float = tried["t"] + tried.get("delay", 0.0)
    if tried.get("mode") != "debounce":
        return due
    others: list[float] = [
        min(other["t"] + other["delay"], tried["t"] + other["bound"])
        for other in records.tried.values()
        if other.get("mode") == "debounce"
        and other["key"] == tried["key"]
        and tried["t"] < other["t"] < until
    ]
    return min([due, *others])


def _hurried(records: RunRecords, id: int, since: float, until: float) -> bool:
    """Whether it may have been made due in this time."""
    return any(
        id in line["ids"] and line["t"] < until + TOLERANCE
        for line in records.by_what["run_now_tried"]
        if line["t"] > since - 10  # it may have waited for a lock
    )


def clock(records: RunRecords) -> Violations:
    """A time in the tables that is impossible."""
    tried = {(x["id"], x["fence"], x["verb"]): x["t"] for x in records.by_what["settle_tried"]}
    for line in records.by_what["settle_accepted"]:
        asked = tried.get((line["id"], line["fence"], line["verb"]), -NEVER)
        for claim in records.claim_at.get((line["id"], line["fence"]), []):
            at = claim.ended if claim.outcome in OUTCOMES[line["verb"]] else asked
            if not asked - 0.01 <= at <= line["t"] + 0.01:
                yield f"message {claim.id} ended {claim.ended - line['t']:+.2f} s off its reply"
    for line in records.by_what["start"]:
        for claim in records.claim_at.get((line["id"], line["fence"]), []):
            after = claim.claimed - line["t"]
            if after > 0.01:
                yield f"message {claim.id} was claimed {after:.2f} s after its start"


def states(records: RunRecords) -> Violations:
    """A message that finds another state at its next start than it saved."""
    tries: dict[tuple[int, int], list[int | None]] = defaultdict(list)
    for line in records.by_what["settle_tried"]:
        if line["verb"] == "defer":
            tries[line["id"], line["fence"]].append(line.get("saves"))
    found = {(line["id"], line["fence"]): line for line in records.by_what["start"]}
    for id, claims in records.claims_of.items():
        saved, n = {0}, None
        for claim in claims:
            start = found.get((id, claim.fence))
            if start is not None:
                if start["n"] != n:  # what it was replaced by has saved nothing yet
                    saved, n = {0}, start["n"]
                if (done := start.get("done", 0)) not in saved:
                    yield f"message {id} had saved {sorted(saved)} and found {done}"
            if claim.outcome == "deferred":
                # Of several tries any may be the one that counted; one without a state keeps it.
                mine = tries[id, claim.fence]
                kept = saved if None in mine or not mine else set()
                saved = kept | {save for save in mine if save is not None}


def zombies(records: RunRecords) -> Violations:
    """A handler that kept working for longer than a lease after its own had expired."""
    yield from [
        f"message {claim.id}: {claim.worker} worked on {seconds:.1f} s after lease {claim.fence}"
        for claim, seconds in overlaps(records)
        if seconds > records.dump["lease"]
    ]


DEAF = ("server", "cut", "silent", "lock", "hog")


def overlaps(records: RunRecords) -> Iterator[tuple[ClaimRecord, float]]:
    """How long a handler kept working beside the next one, not counting while it was stopped or
    could not learn of it."""
    last = {(line["id"], line["fence"]): line["t"] for line in records.by_what["working"]}
    deaf = [f for f in records.by_what["fault"] if f["kind"] in DEAF]
    for lease, moment in last.items():
        for claim in records.claim_at.get(lease, []):
            woken = [
                line["t"]
                for line in records.by_what["resumed_process"]
                if line["target"] == claim.worker and line["t"] < moment
            ]
            since = max([claim.ended, *woken])
            if claim.outcome == "expired" and moment > since and not any(
                f["target"] in ("*", claim.worker) and f["t"] - TOLERANCE < moment
                and f["t"] + f["span"] > since for f in deaf
            ):  # fmt: skip
                yield claim, moment - since


def late_starts(records: RunRecords) -> Violations:
    """A worker that started a message after its lease had expired."""
    for line in records.by_what["start"]:
        for claim in records.claim_at.get((line["id"], line["fence"]), []):
            after = line["t"] - claim.ended
            if line["by"].startswith("worker") and after > TOLERANCE:
                yield f"message {claim.id} was started {after:.2f} s after its lease had ended"


def order(records: RunRecords) -> Violations:
    """In channels of concurrency 1, a message started before an older one of the same producer."""
    published: dict[tuple[str, str], list[int]] = defaultdict(list)
    for line in records.by_what["publish_acknowledged"]:
        tried = records.tried[line["n"]]
        if tried.get("ordered") and line["status"] == "published":
            published[line["by"], tried["channel"]].append(line["id"])
    for ids in published.values():
        begun = [
            (min(records.claims_of[i], key=lambda c: c.fence), i)
            for i in ids
            if records.claims_of[i]
        ]
        for (first, one), (second, other) in pairwise(begun):
            if second.fence < first.fence:
                yield f"{first.channel}: message {other} started before the older {one}"


def paused_starts(records: RunRecords) -> Violations:
    """A claim from a channel or queue, or a start of a kind, that was certainly paused."""
    started = {(line["id"], line["fence"]): line for line in records.by_what["start"]}
    rows = records.dump["history"] + records.dump["messages"]
    names = {row.get("message_id", row["id"]): row for row in rows if row.get("kind")}
    for scope, since, until in _pauses(records):
        queue, kind, channel = scope
        for claim in records.claims_in[channel] if channel else records.claims:
            name = names.get(claim.id, {})
            # A claim puts messages of a paused kind back.
            within = channel or (
                name.get("queue") == queue
                if kind is None
                else (name.get("queue"), name.get("kind")) == (queue, kind)
                and (claim.id, claim.fence) in started
            )
            if within and since < claim.claimed < until - TOLERANCE:
                what = "/".join(part for part in scope if part)
                yield f"{what}: message {claim.id} was claimed while it was paused"


Scope = tuple[str | None, str | None, str | None]
"""A queue, and a kind or a channel of it if only that is paused."""


def _pauses(records: RunRecords) -> Iterator[tuple[Scope, float, float]]:
    """From when a pause was certainly set until it may have ended: by itself, by somebody, or
    because another pause has replaced it."""
    since: dict[Scope, tuple[float, float]] = {}
    tried: dict[Scope, float] = {}
    for line in [*records.lines, {"what": "end", "t": NEVER}]:
        scope = line.get("queue"), line.get("kind"), line.get("channel")
        if line["what"] in ("pause_tried", "resume_tried") and scope in since:
            begun, end = since.pop(scope)
            yield scope, begun, min(end, line["t"])
        if line["what"] == "pause_tried":
            tried[scope] = line["t"]
        elif line["what"] == "pause_set":
            length = NEVER if line["seconds"] is None else line["seconds"]
            since[scope] = line["t"], tried[scope] + length
        elif line["what"] == "end":
            yield from [(scope, *span) for scope, span in since.items()]


def made_due(records: RunRecords) -> Violations:
    """A message that was made due now and is still scheduled for later."""
    for line in records.by_what["run_now_answered"]:
        left = records.waiting.get(line["id"])
        if line["status"] == "due" and left and left["due"] > records.dump["taken_at"] and not any(
            claim.ended > line["t"] - TOLERANCE for claim in records.claims_of[line["id"]]
        ):  # fmt: skip
            yield f"message {line['id']} was made due and waits for its old time"


def cancels_ignored(records: RunRecords) -> Violations:
    """A worker that let a handler run on long after it was asked to cancel it."""
    asked: dict[int, list[float]] = defaultdict(list)
    for line in records.by_what["cancel_answered"]:
        if line["status"] == "requested":
            asked[line["id"]].append(line["t"])
    for claim in records.claims:
        late = [t for t in asked[claim.id] if claim.claimed < t < claim.ended - CANCELLED_WITHIN]
        if late and claim.worker.startswith("worker") and claim.outcome in ("completed", "leased"):
            ended = min(claim.ended, records.dump["taken_at"])
            if ended - late[0] > CANCELLED_WITHIN and not any(
                _excuses(fault, claim, set())
                for fault in records.by_what["fault"]
                if fault["t"] + fault["span"] > late[0]
            ):
                yield (
                    f"message {claim.id}: lease {claim.fence} was {claim.outcome} "
                    f"{ended - late[0]:.1f} s after the request to cancel it"
                )


def operations(records: RunRecords) -> Violations:
    """A bulk operation that did not end, left letters behind, or counted wrongly."""
    found = records.dump.get("operations", [])
    for one in found:
        what = f"operation {one['id']} ({one['action']})"
        if one["state"] not in ("done", "cancelled"):
            yield f"{what} is {one['state']}: {one['done']} of {one['total']}"
        if one["total"] is not None and one["done"] > one["total"]:
            yield f"{what} has done {one['done']} of {one['total']}"
        for row in records.dump["dead"] if one["state"] == "done" else []:
            names = all(row[name] == value for name, value in one["wanted"].items())
            deaths = [end for end in records.rows[row["id"]] if end["dead"]]
            seen = max(map(records.told_ended, deaths), default=row["died_at"])
            if names and seen < one["started_at"] - TOLERANCE:
                yield f"{what} has left letter {row['id']} behind"
    told = {line["id"] for line in records.by_what["bulk_started"]}
    for id in sorted(told - {one["id"] for one in found}):
        yield f"operation {id} was started and is not there"
    places = {tuple(sorted(one["wanted"].items())) for one in found}
    for action, outcome in (("redrive", "redriven"), ("discard", "discarded")):
        for place in places:
            done = sum(
                one["done"]
                for one in found
                if one["action"] == action and tuple(sorted(one["wanted"].items())) == place
            )
            rows = sum(
                row["outcome"] == outcome and all(row[name] == value for name, value in place)
                for row in records.dump["history"]
            )
            if done != rows:
                yield f"operations have {outcome} {done} letters, the history has {rows}"


def keys(records: RunRecords) -> Violations:
    """Two live messages with one key, or a key still held after its message ended."""
    holders: dict[str, list[int]] = defaultdict(list)
    for line in records.by_what["publish_acknowledged"]:
        tried = records.tried[line["n"]]
        key = tried.get("key")
        if key is None:
            continue
        if line["status"] == "published":
            for id in holders[key] if key not in records.replacing else []:
                if tried["window"] or records.ended_at(id) > line["t"] + TOLERANCE:
                    yield f"key {key}: message {line['id']} was published beside {id}"
            holders[key].append(line["id"])
        elif line["id"] not in records.known:
            yield f"key {key}: message {line['id']} holds it but does not exist"
        elif not tried["window"] and any(
            records.told_ended(row) < tried["t"] for row in records.ends[line["id"]][:1]
        ):
            yield f"key {key}: message {line['id']} has ended and still holds it"


def newest(records: RunRecords) -> Violations:
    """Of messages that replace others: one that ran with an older content than was acknowledged, or
    with one that was not accepted; or a replacement that was not accepted without a reason."""
    given: dict[int, list[Record]] = defaultdict(list)
    for n, line in records.answered.items():
        if (key := _key(records, n)) in records.replacing:
            tried = records.tried[n]
            if line["status"] != "existing":
                given[line["id"]].append(line)
            elif tried["mode"] != "keep" and tried["last"]:
                yield f"key {key}: {n} changed nothing"
    content: dict[tuple[int, int], Record] = {}
    for start in records.by_what["start"]:
        if (key := _key(records, start["n"])) in records.replacing:
            told = records.answered.get(start["n"])
            if told is not None and told["status"] != "existing":
                content[start["id"], start["fence"]] = told
            elif told is not None or not records.tried[start["n"]]["last"]:
                yield f"key {key}: {start['n']} was not accepted and started"
    for id, lines in given.items():
        for claim in records.claims_of[id]:
            # Of unknown outcome: it may have come last.
            ran = content.get((id, claim.fence))
            later = (
                line
                for line in lines
                if ran is not None
                and records.tried[line["n"]]["t"] > ran["t"]
                and not _replaced_after(claim, line["t"])
            )
            for line in later:
                assert ran is not None
                yield (
                    f"message {id}: {line['n']} replaced {ran['n']}, which lease {claim.fence} ran "
                    f"{claim.claimed - line['t']:+.2f} s after that"
                )
                break


def _replaced_after(claim: ClaimRecord, moment: float) -> bool:
    """Whether the message may have been replaced at this moment after that lease: put back."""
    return (
        claim.outcome in ("deferred", "retried", "expired", "given_back")
        and not claim.dead
        and claim.claimed <= moment
        and claim.ended <= moment + TOLERANCE
    )


def one_of_a_key(records: RunRecords) -> Violations:
    """Of messages that replace others: one that began before the one in front of it had ended, or
    was published although one of its key waited already."""
    keys = {
        line["id"]: _key(records, line["n"])
        for line in [*records.answered.values(), *records.by_what["start"]]
        if _key(records, line["n"]) in records.replacing
    }
    gone = {id: records.gone_at({"id": id}) for id in keys}
    last: dict[str, ClaimRecord] = {}
    for claim in records.claims:
        key = keys.get(claim.id)
        # A letter that was redriven lives on without its key.
        if key is None or claim.claimed > gone[claim.id] + TOLERANCE:
            continue
        first = last.get(key, claim)
        if first.id != claim.id and gone[first.id] > claim.claimed + TOLERANCE:
            yield f"key {key}: message {claim.id} began before {first.id} had ended"
        last[key] = claim
    there: dict[str, list[Record]] = defaultdict(list)
    for n, line in records.answered.items():
        key, tried = _key(records, n), records.tried[n]
        if key not in records.replacing or key is None or line["status"] != "published":
            continue
        there[key] = [one for one in there[key] if gone[one["id"]] > line["t"] + TOLERANCE]
        others = [one["id"] for one in there[key] if one["t"] < tried["t"]]
        waiting = [id for id in others if not _leased(records, id, tried["t"], line["t"])]
        if waiting or len(others) > (tried["mode"] != "keep"):
            yield f"key {key}: message {line['id']} was published beside {others}"
        there[key].append(line)


def _leased(records: RunRecords, id: int, since: float, until: float) -> bool:
    """Whether it may have been leased in this time: others see the end of a lease later."""
    return any(
        claim.claimed < until + TOLERANCE
        and records.told.get((id, claim.fence), claim.ended + AFTER) > since - TOLERANCE
        for claim in records.claims_of[id]
    )


def debounced(records: RunRecords) -> Violations:
    """A start before the delay of the last publish was over, or the longest time of all delays."""
    first = {line["id"]: records.tried[n]["t"] for n, line in records.published.items()}
    for line in records.by_what["start"]:
        tried = records.tried.get(line["n"], {})
        if tried.get("mode") != "debounce" or line["id"] not in first:
            continue
        due = min(tried["t"] + tried["delay"], first[line["id"]] + tried["bound"])
        for claim in records.claim_at.get((line["id"], line["fence"]), []):
            early = due - claim.claimed
            if early > 0.01 and not _hurried(records, claim.id, tried["t"], claim.claimed):
                yield f"message {claim.id} was claimed {early:.2f} s before it was quiet"


def flows(records: RunRecords) -> Violations:
    """A node of a flow that was begun before those it comes after, or although it was not to be
    run, or never; or that was added by an attempt that did not complete."""
    nodes = {node["id"]: node for line in records.by_what["flow"] for node in line["nodes"]}
    for line in records.by_what["flow_added"]:
        ends = records.ends[line["adder"]]
        if any(row["outcome"] == "completed" and row["fence"] == line["fence"] for row in ends):
            nodes |= {node["id"]: node for node in line["nodes"]}
        else:
            for node in line["nodes"]:
                if node["id"] in records.known:
                    yield f"node {node['id']} was added by lease {line['fence']}, which was lost"
    fates: dict[int, tuple[bool | None, float]] = {}
    for id in sorted(nodes):
        runs, decided = fates[id] = _node_fate(records, nodes[id], fates)
        begun = min((claim.claimed for claim in records.claims_of[id]), default=NEVER)
        if runs is not True and id in records.known:
            why = "was not to be run" if runs is False else "waits for others"
            yield f"node {id} ({nodes[id]['n']}) {why}, and is a message"
        elif runs and id not in records.known:
            yield f"node {id} ({nodes[id]['n']}) was never begun"
        elif runs and begun < decided - TOLERANCE:
            yield f"node {id} ({nodes[id]['n']}) began {decided - begun:.2f} s too early"


def _node_fate(
    records: RunRecords, node: Record, fates: dict[int, tuple[bool | None, float]]
) -> tuple[bool | None, float]:
    """Whether it is to be run, None if that is not decided, and since when that is known."""
    missed, times = False, [0.0]
    for parent in node["after"]:
        runs, decided = fates.get(parent, (True, 0.0))
        if runs is False:
            missed, times = True, [*times, decided]
            continue
        ends = [row for row in records.rows[parent] if row["terminal"]]
        if node["when"] != "completed":
            # A dead letter decides those who do not wait for its completion.
            ends = [row for row in records.rows[parent] if row["terminal"] or row["dead"]]
        if not ends:
            return None, NEVER
        missed = missed or ends[0]["outcome"] != "completed"
        times.append(ends[0]["ended_at"])
    runs_when = {"completed": not missed, "failed": missed, "ended": True}
    return runs_when[node["when"]], max(times)


def expired_early(records: RunRecords) -> Violations:
    """A lease that was taken back before its time."""
    until: dict[tuple[int, int], float] = defaultdict(float)
    for line in records.by_what["extended"]:
        lease = line["id"], line["fence"]
        until[lease] = max(until[lease], line["until"])
    for claim in records.claims:
        least = max(claim.claimed + records.dump["lease"], until[claim.id, claim.fence])
        if claim.outcome == "expired" and claim.ended < least - 0.01:
            yield (
                f"message {claim.id}: lease {claim.fence} expired {least - claim.ended:.2f} s early"
            )


def expired_unexplained(records: RunRecords) -> Violations:
    """A lease that expired although no fault had hit its holder."""
    faults = records.by_what["fault"]
    started = {(line["id"], line["fence"]) for line in records.by_what["start"]}
    # Its outcome was being written, and such leases are no longer extended.
    ended = [*records.by_what["settle_tried"], *records.by_what["raised"]]
    started -= {(line["id"], line["fence"]) for line in ended}
    # The consumer's own connection broke, perhaps long after the server did: it gave up, and while
    # it waited for an answer it did nothing for the others that it holds.
    broke = [line for line in records.by_what["settle_unknown"] if "error" in line]
    undone = {(line["id"], line["fence"]) for line in broke}
    yield from [
        f"message {claim.id}: lease {claim.fence} of {claim.worker} expired after "
        f"{claim.ended - claim.claimed:.1f} s without any fault"
        for claim in records.claims
        if claim.outcome == "expired"
        and (claim.id, claim.fence) not in undone
        and not any(
            line["by"] == claim.worker and -TOLERANCE < line["t"] - claim.ended < ANSWER
            for line in broke
        )
        and not any(_excuses(fault, claim, started) for fault in faults)
    ]


def _excuses(fault: Record, claim: ClaimRecord, started: set[tuple[int, int]]) -> bool:
    if fault.get("unstarted") and (claim.id, claim.fence) in started:
        return False
    return (
        fault.get("id") in (None, claim.id)
        and fault["target"] in ("*", claim.worker)
        # Whoever means to keep one message past its lease may be too slow to say so in time.
        and fault["t"] <= claim.ended + TOLERANCE + (fault["span"] if "id" in fault else 0.0)
        and fault["t"] + fault["span"] >= claim.claimed - TOLERANCE
    )


def budget(records: RunRecords) -> Violations:
    """A dead letter before its attempts were used up, or a message still tried after that."""
    for id, rows in records.rows.items():
        if _key(records, records.name_of.get(id, "")) in records.replacing:
            continue  # what replaces another has all its attempts
        most = records.tried.get(records.name_of.get(id, ""), {}).get("max_attempts", 0)
        spent = 0
        for row in rows if most else []:
            if row["outcome"] in ("deferred", "redriven"):
                spent = 0
            elif row["outcome"] in ("retried", "expired"):
                spent += 1
                if row["dead"] != (spent >= most):
                    fate = "became a dead letter" if row["dead"] else "is still tried"
                    yield f"message {id} {fate} after {spent} of {most} tries"


def cancelled(records: RunRecords) -> Violations:
    """A cancelled message that ended otherwise or started again, or was cancelled while leased."""
    for line in records.by_what["cancel_answered"]:
        outcomes = [row["outcome"] for row in records.ends[line["id"]]]
        if line["status"] == "cancelled" and outcomes != ["cancelled"]:
            yield f"message {line['id']} was cancelled and has ended as {outcomes}"
    for end in (end for ends in records.ends.values() for end in ends if end["fence"] is None):
        for claim in records.claims_of[end["message_id"]]:
            if claim.ended > end["ended_at"] + TOLERANCE:
                yield f"message {claim.id} was {end['outcome']} under lease {claim.fence}"
    for end in (end for ends in records.ends.values() for end in ends):
        for claim in records.claims_of[end["message_id"]]:
            if end["outcome"] == "cancelled" and claim.claimed > end["ended_at"] + TOLERANCE:
                yield f"message {claim.id} was claimed after it had been cancelled"


def effects(records: RunRecords) -> Violations:
    """An effect in the same database without its message's completion, or the reverse, or twice."""
    count = Counter(records.dump["effects"])
    yield from [
        f"the effect of {n} happened {times} times" for n, times in count.items() if times > 1
    ]
    for id, n in records.name_of.items():
        kind = records.tried.get(n, {}).get("kind")
        done = any(row["outcome"] == "completed" for row in records.ends[id])
        if kind == "effect" and done != (n in count):
            found = "missing" if done else "there"
            yield f"{n} was {'' if done else 'not '}completed, but its effect is {found}"


def results(records: RunRecords) -> Violations:
    """A result of an attempt that did not complete its message, or a completion that lacks one."""
    if "results" not in records.dump:
        return
    found = {row["id"]: row["fence"] for row in records.dump["results"]}
    for id in sorted({*found, *records.ends}):
        done = [row["fence"] for row in records.ends[id] if row["outcome"] == "completed"]
        asked = records.tried.get(records.name_of.get(id, ""), {}).get("keep")
        if id in found and found[id] not in done:
            yield f"message {id} has the result of lease {found[id]}, but was completed by {done}"
        elif done and asked and id not in found:
            yield f"message {id} was completed by lease {done[0]} and has no result"


Place = tuple[int, str, str]
"""The beginning of a minute or an hour in microseconds, a queue and a kind."""


def minutes(records: RunRecords) -> Violations:
    """A figure by minute or hour that is not what the history and the ledgers add up to."""
    if "minutes" not in records.dump:
        return
    for span, length in SPANS.items():
        found = _counted_figures(records.dump["minutes"][span])
        expected = _expected_figures(records, length)
        for place in sorted({*found, *expected}):
            for name in sorted({*found[place], *expected[place]}):
                if found[place][name] != expected[place][name]:
                    at, queue, kind = place
                    yield (
                        f"{span} {at / 1e6:.0f} of {queue}/{kind}: {name} is "
                        f"{found[place][name]}, not {expected[place][name]}"
                    )
        if not all(row["exact"] for row in records.dump["minutes"][span]):
            yield f"a {span} is said to be incomplete, but all history was kept"
        yield from _published(records, span)
    yield from _against_ledgers(records)


def _counted_figures(rows: list[Record]) -> dict[Place, Counter[str]]:
    """What was published is counted by the time of the first publish, which the history of those
    that did not end does not have: it is checked by itself."""
    found: dict[Place, Counter[str]] = defaultdict(Counter)
    for row in rows:
        place = found[row["at"], row["queue"], row["kind"]]
        for name in ("started", "dead", *COUNTED):
            place[name] += row[name]
        for name in ("waits", "runs"):
            place.update({f"{name}[{n}]": count for n, count in enumerate(row[name])})
    return found


def _expected_figures(records: RunRecords, length: int) -> dict[Place, Counter[str]]:
    expected: dict[Place, Counter[str]] = defaultdict(Counter)
    for row in records.dump["history"]:
        if row["outcome"] not in COUNTED:
            continue
        due, published, claimed, started, ended = row["times"]
        names = row["queue"], row["kind"]
        place = expected[ended - ended % length, *names]
        place[row["outcome"]] += 1
        place["dead"] += row["dead"]
        if claimed is not None:
            expected[claimed - claimed % length, *names]["started"] += 1
            began = claimed if started is None else started
            ready = max(at for at in (due, published, -1) if at is not None)
            place[f"waits[{bisect_left(BOUNDS, began - ready)}]"] += 1
            place[f"runs[{bisect_left(BOUNDS, ended - began)}]"] += 1
    return expected


def _published(records: RunRecords, span: str) -> Violations:
    """By queue and kind: as many as there are ids, and no fewer than were acknowledged nor more
    than were tried."""
    found: Counter[tuple[str, str]] = Counter()
    for row in records.dump["minutes"][span]:
        found[row["queue"], row["kind"]] += row["published"]
    rows = [*records.dump["messages"], *records.dump["dead"]]
    # A note of a stale write may not know what it was about.
    rows += [row | {"id": row["message_id"]} for row in records.dump["history"] if row["kind"]]
    there = Counter({row["id"]: (row["queue"], row["kind"]) for row in rows}.values())
    never = {line["n"] for line in records.by_what["publish_refused"]} | records.undone
    existing = {line["n"] for line in records.by_what["publish_acknowledged"]}
    least, most = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for n, tried in records.tried.items():
        least[tried["queue"], tried["kind"]] += n in records.published
        most[tried["queue"], tried["kind"]] += n in records.published or n not in existing | never
    for place in sorted({*found, *there, *least}):
        if found[place] != there[place] or not least[place] <= found[place] <= most[place]:
            yield (
                f"{span}s of {'/'.join(place)}: {found[place]} published, there were "
                f"{there[place]}, {least[place]} acknowledged, {most[place]} at most"
            )


def _against_ledgers(records: RunRecords) -> Violations:
    """What consumers were told, and what they asked for, are the bounds of what was counted."""
    found: Counter[str] = Counter()
    for row in records.dump["minutes"]["minute"]:
        found.update({name: row[name] for name in ("started", *COUNTED)})
    held = {(row["id"], row["fence"]) for row in records.dump["messages"]}
    started = {(line["id"], line["fence"]) for line in records.by_what["start"]} - held
    done, asked = (
        {
            (line["id"], line["fence"])
            for line in records.by_what[what]
            if line["verb"] == "complete"
        }
        for what in ("settle_accepted", "settle_tried")
    )
    ended = {x["id"] for x in records.by_what["cancel_answered"] if x["status"] == "cancelled"}
    for name, least, most in (
        ("started", len(started), NEVER),
        ("completed", len(done), len(asked)),
        ("cancelled", len(ended), NEVER),
    ):
        if not least <= found[name] <= most:
            yield f"{found[name]} were {name}, by the ledgers from {least} to {most}"


def stats(records: RunRecords) -> Violations:
    """A queue's stats, or a count that upkeep keeps, that is not what the tables hold."""
    if "stats" not in records.dump:
        return
    there: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in records.dump["messages"]:
        there[row["queue"]]["leased" if row["state"] == "leased" else "waiting"] += 1
        kinds[row["queue"], row["kind"]]["live"] += 1
    for row in records.dump["dead"]:
        there[row["queue"]]["dead"] += 1
        kinds[row["queue"], row["kind"]]["dead"] += 1
    found = {row["queue"]: row for row in records.dump["stats"]}
    for queue in sorted({*found, *there}):
        for name in ("waiting", "leased", "dead"):
            says = found.get(queue, {}).get(name, 0)
            if says != there[queue][name]:
                yield f"stats of {queue}: {says} {name}, there are {there[queue][name]}"
    counts = {(row["queue"], row["kind"]): row for row in records.dump["kinds"]}
    for place in sorted({*counts, *kinds}):
        for name in ("live", "dead"):
            says = counts.get(place, {}).get(name, 0)
            if says != kinds[place][name]:
                yield f"counts of {'/'.join(place)}: {says} {name}, there are {kinds[place][name]}"


FAILURES = (
    "publish_unknown", "publish_rolled_back", "claim_failed", "settle_unknown", "settle_failed",
    "operation_failed",
)  # fmt: skip
BREAKS = ("cut", "silent", "server", "stop", "lock", "disk", "promote", "stall")
LOCKED = ("55P03", "1205", "1213", "SQLITE_BUSY")
"""The words of databases for a lock that somebody else held."""


def needless_errors(records: RunRecords) -> Violations:
    """A call of the library that failed though no fault explains it: idle ends, poolers do not."""
    breaks = [fault for fault in records.by_what["fault"] if fault["kind"] in BREAKS]
    for line in (line for what in FAILURES for line in records.by_what[what]):
        kind = line.get("type")
        if kind not in ("ConnectionUnavailable", "OutcomeUnknown", "DatabaseFailed"):
            continue
        if line.get("state") not in LOCKED and not any(
            fault["target"] in ("*", line["by"])
            and fault["t"] <= line["t"] + TOLERANCE
            and line["t"] <= fault["t"] + fault["span"] + AFTER
            for fault in breaks
        ):
            yield f"{line['by']}: {line['what']}, {kind} {line.get('state')}: {line.get('error')}"


def sampled(records: RunRecords) -> Violations:
    """A violation that the sampler saw in a snapshot during the run."""
    yield from [line["text"] for line in records.by_what["violation"]]


RULES: tuple[Callable[[RunRecords], Violations], ...] = (
    lost, unexpected, mixed_up, two_states, stuck, history, unexplained_duplicates, fences,
    stale_accepted, completed_unworked, wrongly_lost, over_limit, rate_excess,
    shared_limits, breakers, backlog, order, priorities, paused_starts, too_early, clock, keys,
    newest, one_of_a_key, debounced,
    expired_early, expired_unexplained, budget, states, cancelled, cancels_ignored, made_due,
    operations, effects, results, flows, zombies, late_starts, needless_errors, minutes, stats,
    sampled,
)  # fmt: skip


def figures(records: RunRecords) -> dict[str, int]:
    """How much happened in the run."""
    starts = Counter(line["id"] for line in records.by_what["start"])
    outcomes = Counter(claim.outcome for claim in records.claims)
    return {
        "tried": len(records.tried),
        "acknowledged": len(records.by_what["publish_acknowledged"]),
        "unknown": len(records.by_what["publish_unknown"]),
        "rolled_back": len(records.undone),
        "starts": starts.total(),
        "duplicated": sum(n > 1 for n in starts.values()),
        "completed": outcomes["completed"],
        "expired": outcomes["expired"],
        "stale_refused": len(records.by_what["settle_lost"]),
        "dead": len(records.dead),
        "faults": sum(line["kind"] != "stall" for line in records.by_what["fault"]),
        "samples": sum(line["count"] for line in records.by_what["sampled"]),
    }


def kinds(records: RunRecords) -> dict[str, int]:
    """How often each fault happened; graceful stops, old snapshots, ended idle connections and
    stalls of the machine are counted too."""
    lines = [line["kind"] for line in records.by_what["fault"]]
    mild = ("term", "snapshot", "idle")
    lines += [line["what"] for what in mild for line in records.by_what[what]]
    return dict(sorted(Counter(lines).items()))


def recovery(records: RunRecords) -> dict[str, dict[str, Any]]:
    """Seconds from a fault to the recovery, with our targets."""
    lease = records.dump["lease"]
    return {
        "returned": _spread(_after_kill(records, lambda first, _: first.ended), lease + 1),
        "killed": _spread(_after_kill(records, lambda _, second: second.claimed), lease + 1),
        "server": _spread(_served_again(records), 5.0),
        "zombie": _spread((seconds for _, seconds in overlaps(records)), lease / 3),
    }


def _after_kill(
    records: RunRecords, what: Callable[[ClaimRecord, ClaimRecord], float]
) -> Iterator[float]:
    """From the end of a process to what became of its leases: only leases of normal length, in
    channels whose limits do not delay it."""
    ends = {
        fault["target"]: fault["t"]
        for fault in records.by_what["fault"]
        if fault["kind"] in ("kill", "exit")
    }
    longer = {(line["id"], line["fence"]) for line in records.by_what["extended"]}
    for claims in records.claims_of.values():
        for first, second in pairwise(claims):
            if (first.id, first.fence) in longer:
                continue
            killed = ends.get(first.worker, NEVER)
            if first.outcome == "expired" and first.channel.startswith("unlimited") and (
                first.claimed < killed < first.ended
            ):  # fmt: skip
                yield what(first, second) - killed


def _served_again(records: RunRecords) -> Iterator[float]:
    """From the server's return to the first claim."""
    times = sorted(claim.claimed for claim in records.claims)
    for line in records.by_what["server_back"]:
        yield from [time - line["t"] for time in times if time >= line["t"]][:1]


def _spread(seconds: Iterable[float], target: float) -> dict[str, Any]:
    found = sorted(round(value, 3) for value in seconds)
    last = len(found) - 1
    return {
        "count": len(found),
        "median": found[last // 2] if found else None,
        "p99": found[min(last, int(len(found) * 0.99))] if found else None,
        "most": found[last] if found else None,
        "target": round(target, 3),
        "times": found,
    }


def check(lines: Iterable[Record], dump: dict[str, Any]) -> dict[str, Any]:
    """The verdict: ``counts`` has the violations of each rule, ``broken`` some of them as text."""
    records = RunRecords(list(lines), dump)
    violations = {rule.__name__: list(rule(records)) for rule in RULES}
    return {
        "good": not any(violations.values()),
        "server": records.dump.get("server"),
        "figures": figures(records),
        "kinds": kinds(records),
        "recovery": recovery(records),
        "counts": {name: len(found) for name, found in violations.items()},
        "broken": {name: found[:SHOWN] for name, found in violations.items() if found},
        # No violation in n starts: its chance per start is below 3/n, at 95 % confidence.
        "bound": 3 / max(1, len(records.by_what["start"])),
    }


def read_ledgers(folder: Path) -> Iterator[Record]:
    """A process that was killed may leave half a line at the end of its file."""
    for file in sorted(folder.glob("*.jsonl")):
        for text in file.read_text().splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            yield line | {"by": file.stem}


def main(folder: str) -> int:
    place = Path(folder)
    verdict = check(read_ledgers(place), json.loads((place / "dump.json").read_text()))
    sys.stdout.write(json.dumps(verdict, indent=2) + "\n")
    return 0 if verdict["good"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
