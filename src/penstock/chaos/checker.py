"""Settles the accounts of a chaos run: ledgers and a dump of the tables in, a verdict out.

Standard library only, and nothing of the library whose promises it checks: it can be read, copied
and run by itself. ``python checker.py FOLDER`` reads ``*.jsonl`` and ``dump.json`` from the folder,
prints the verdict as JSON and exits with 1 if a promise was broken.

Times of the ledger and of the tables are of the same machine. The database reads its clock a moment
before what it does can be seen, so two times are compared only up to ``BLINK``.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

BLINK = 0.25  # seconds
NEVER = float("inf")
SHOWN = 5  # pieces of evidence a rule

Line = dict[str, Any]
Evidence = Iterator[str]

OUTCOMES = {
    "complete": {"completed"},
    "defer": {"deferred", "retried"},
    "fail": {"failed"},
    "give_back": {"given_back"},
}


class Claim(NamedTuple):
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
class Books:
    """Everything that was written down, and the same by what it is looked up with."""

    lines: list[Line]
    dump: dict[str, Any]

    def __post_init__(self) -> None:
        self.lines.sort(key=lambda line: line["t"])
        self.by_what: dict[str, list[Line]] = defaultdict(list)
        for line in self.lines:
            self.by_what[line["what"]].append(line)
        self.tried = {line["n"]: line for line in self.by_what["publish_tried"]}
        self.published = {
            line["n"]: line
            for line in self.by_what["publish_acknowledged"]
            if line["status"] == "published"
        }
        self.undone = {line["n"] for line in self.by_what["publish_rolled_back"]}
        self.name_of = {line["id"]: n for n, line in self.published.items()}
        self.name_of |= {line["id"]: line["n"] for line in self.by_what["start"]}
        self.waiting = {row["id"]: row for row in self.dump["messages"]}
        self.dead = {row["id"]: row for row in self.dump["dead"]}
        self.ends: dict[int, list[Line]] = defaultdict(list)
        self.rows: dict[int, list[Line]] = defaultdict(list)
        for row in sorted(self.dump["history"], key=lambda row: (row["ended_at"], row["id"])):
            self.rows[row["message_id"]].append(row)
            if row["terminal"]:
                self.ends[row["message_id"]].append(row)
        self.known = {*self.waiting, *self.dead, *self.rows}
        self.claims = sorted(self._claims(), key=lambda claim: (claim.claimed, claim.fence))
        self.claims_of: dict[int, list[Claim]] = defaultdict(list)
        self.claims_in: dict[str, list[Claim]] = defaultdict(list)
        self.claim_at: dict[tuple[int, int], list[Claim]] = defaultdict(list)
        for claim in self.claims:
            self.claims_of[claim.id].append(claim)
            self.claims_in[claim.channel].append(claim)
            self.claim_at[claim.id, claim.fence].append(claim)

    def _claims(self) -> Iterator[Claim]:
        for row in self.dump["history"]:
            if row["claimed_at"] is not None and row["outcome"] != "stale":
                yield Claim(
                    row["message_id"], row["fence"], row["channel"], row["worker"] or "",
                    row["attempt"], row["claimed_at"], row["ended_at"], row["outcome"], row["dead"],
                )  # fmt: skip
        for row in self.dump["messages"]:
            if row["state"] == "leased":
                yield Claim(
                    row["id"], row["fence"], row["channel"], row["worker"] or "", row["attempt"],
                    row["claimed_at"], NEVER, "leased", False,
                )  # fmt: skip

    def gone_at(self, line: Line) -> float:
        """When the published message was finished or dead; a redrive brings none of these back."""
        ends = [row["ended_at"] for row in self.rows[line["id"]] if row["terminal"] or row["dead"]]
        return min(ends, default=NEVER)

    def seen_gone(self, line: Line) -> float:
        """By when others saw that it was finished or dead."""
        ends = [row for row in self.rows[line["id"]] if row["terminal"] or row["dead"]]
        return min(map(self.seen_ended, ends), default=NEVER)

    def ended_at(self, id: int) -> float:
        """When the message was finished; never, while it waits, is leased or is a dead letter."""
        return self.ends[id][0]["ended_at"] if self.ends[id] else NEVER

    def seen_ended(self, row: Line) -> float:
        """By when others saw that end for sure: it is dated when it was written, and committed
        later if its writer was stopped or waited for a lock meanwhile."""
        ended: float = row["ended_at"]
        spans: list[float] = [
            line["t"] + line["span"]
            for line in self.by_what["fault"]
            if line["kind"] in ("stop", "lock", "hog", "stall")
            # Nobody's name is on what was cancelled.
            and (row["worker"] is None or line["target"] in ("*", row["worker"]))
            and line["t"] <= ended + BLINK
        ]
        return max([ended, *spans])

    def committed(self) -> set[int]:
        """The messages that must be somewhere: acknowledged, or seen by a handler."""
        return {line["id"] for line in self.published.values()} | {
            line["id"] for line in self.by_what["start"]
        }


def lost(books: Books) -> Evidence:
    """Acknowledged, and neither waiting, leased, dead nor finished."""
    yield from [
        f"message {id} ({books.name_of.get(id)}) is nowhere"
        for id in sorted(books.committed())
        if id not in books.waiting and id not in books.dead and not books.ends[id]
    ]


def two_states(books: Books) -> Evidence:
    """A message in more than one state, or finished more than once."""
    for id in {*books.waiting, *books.dead, *books.ends}:
        places = (id in books.waiting) + (id in books.dead) + len(books.ends[id])
        if places > 1:
            yield f"message {id} is in {places} states at once"
    rows = Counter(row["id"] for row in books.dump["messages"] + books.dump["dead"])
    yield from [f"message {id} is stored {n} times" for id, n in rows.items() if n > 1]


def unexpected(books: Books) -> Evidence:
    """What nobody published, or what was rolled back or refused, and is there."""
    # An id that was rolled back may be given to another message, where the database counts so.
    never = {
        line["id"]
        for line in books.by_what["publish_rolled_back"]
        if line.get("id") and books.name_of.get(line["id"], line["n"]) == line["n"]
    }
    yield from [f"message {id} was rolled back and is there" for id in sorted(never & books.known)]
    refused = {line["n"] for line in books.by_what["publish_refused"]} | books.undone
    for line in books.by_what["start"]:
        if line["n"] not in books.tried:
            yield f"message {line['id']} ({line['n']}) was never published"
        elif line["n"] in refused:
            yield f"message {line['id']} ({line['n']}) was refused or rolled back"


def mixed_up(books: Books) -> Evidence:
    """An answer that was another's, or one publish that became two messages."""
    ids: dict[str, set[int]] = defaultdict(set)
    for line in [*books.published.values(), *books.by_what["start"]]:
        ids[line["n"]].add(line["id"])
    yield from [f"{n} is message {sorted(found)}" for n, found in ids.items() if len(found) > 1]
    names: dict[int, set[str]] = defaultdict(set)
    for line in [*books.published.values(), *books.by_what["start"]]:
        names[line["id"]].add(line["n"])
    yield from [f"message {id} is {sorted(n)}" for id, n in names.items() if len(n) > 1]


def stuck(books: Books) -> Evidence:
    """Still there when everything due should have been done."""
    now = books.dump["taken_at"]
    yield from [
        f"message {row['id']} of {row['channel']} is {row['state']} since {now - row['due']:.1f} s"
        for row in books.dump["messages"]
        if row["due"] <= now - BLINK
    ]


def history(books: Books) -> Evidence:
    """Every start has exactly one end in the history, or still holds its lease."""
    yield from [
        f"message {id} has {len(claims)} ends of lease {fence}"
        for (id, fence), claims in books.claim_at.items()
        if len(claims) > 1
    ]
    for line in books.by_what["start"]:
        if not books.claim_at.get((line["id"], line["fence"])):
            yield f"message {line['id']}: lease {line['fence']} was started and has no end"


def unexplained_duplicates(books: Books) -> Evidence:
    """A second start without an expired, failed, deferred or given back end of the first."""
    starts = Counter((line["id"], line["fence"]) for line in books.by_what["start"])
    yield from [
        f"message {i}: lease {f} was started {n} times" for (i, f), n in starts.items() if n > 1
    ]
    for id, claims in books.claims_of.items():
        for first, second in pairwise(claims):
            if first.fence != second.fence and not _explained(books, first, second):
                yield (
                    f"message {id}: lease {second.fence} began after {first.fence} was "
                    f"{first.outcome}, {second.claimed - first.ended:+.3f} s"
                )


def _explained(books: Books, first: Claim, second: Claim) -> bool:
    if first.outcome in ("completed", "leased") or first.ended > second.claimed + BLINK:
        return False
    redriven = (row for row in books.rows[first.id] if row["outcome"] == "redriven")
    return not first.dead or any(
        first.ended - BLINK <= row["ended_at"] <= second.claimed + BLINK for row in redriven
    )


def fences(books: Books) -> Evidence:
    """The fence rises at every claim; the attempt too, but after giving back."""
    for id, claims in books.claims_of.items():
        for first, second in pairwise(claims):
            step = 0 if first.outcome == "given_back" else 1
            if second.fence <= first.fence:
                yield f"message {id}: fence {second.fence} came after {first.fence}"
            elif second.attempt != first.attempt + step and first.outcome != "leased":
                yield (
                    f"message {id}: attempt {second.attempt} came after {first.attempt}, "
                    f"which was {first.outcome}"
                )


def stale_accepted(books: Books) -> Evidence:
    """A write was accepted of somebody whose lease had another end."""
    for line in books.by_what["settle_accepted"]:
        ends = {claim.outcome for claim in books.claim_at.get((line["id"], line["fence"]), [])}
        if not ends & OUTCOMES[line["verb"]]:
            yield (
                f"message {line['id']}: {line['verb']} under lease {line['fence']} was accepted, "
                f"the history says {', '.join(sorted(ends)) or 'nothing'}"
            )
    for line in books.by_what["extended"]:
        for claim in books.claim_at.get((line["id"], line["fence"]), []):
            if claim.ended < line["tried"] - BLINK:
                yield f"message {line['id']}: lease {line['fence']} was extended after its end"


def completed_unworked(books: Books) -> Evidence:
    """A completion under a lease whose holder never asked for it."""
    asked = {(line["id"], line["fence"]) for line in books.by_what["settle_tried"]}
    yield from [
        f"message {claim.id}: lease {claim.fence} of {claim.worker} completed, and nobody asked"
        for claim in books.claims
        if claim.outcome == "completed" and (claim.id, claim.fence) not in asked
    ]


def wrongly_lost(books: Books) -> Evidence:
    """Somebody was told that a lease is lost which was alive."""
    for line in books.by_what["settle_lost"]:
        for claim in books.claim_at.get((line["id"], line["fence"]), []):
            if claim.ended > line["t"] + BLINK:
                yield f"message {line['id']}: lease {line['fence']} was called lost and lived"


def over_limit(books: Books) -> Evidence:
    """A claim that brought a channel over the concurrency which held for sure."""
    for channel, terms in _policies(books).items():
        for claim in books.claims_in[channel]:
            limit = _highest(terms, "concurrency", claim.claimed)
            held = [c for c in books.claims_in[channel] if _meet(c, claim)]
            if len(held) > limit:
                over = min(c.ended for c in held) - claim.claimed
                yield (
                    f"{channel}: {len(held)} leases at once, {limit:.0f} allowed, "
                    f"for {min(over, 1e6) * 1000:.0f} ms"
                )


def _meet(other: Claim, claim: Claim) -> bool:
    """Whether the other was held when this one was claimed, for longer than a blink."""
    return (
        (other.claimed, other.fence, other.id) <= (claim.claimed, claim.fence, claim.id)
        and other.ended > claim.claimed + BLINK
        and claim.ended > claim.claimed + BLINK
    )


class Terms(NamedTuple):
    """A policy, and when it may have held: from when it was asked for to when the next one did."""

    since: float
    until: float
    concurrency: float
    rate: float
    burst: float
    backlog: float


def _policies(books: Books) -> dict[str, list[Terms]]:
    known = {(line["by"], line["number"]): line["t"] for line in books.by_what["policy_set"]}
    asked: dict[str, list[Line]] = defaultdict(list)
    for line in books.by_what["policy_tried"]:
        asked[line["channel"]].append(line)
    return {channel: list(_terms(lines, known)) for channel, lines in asked.items()}


def _terms(lines: list[Line], known: dict[tuple[str, int], float]) -> Iterator[Terms]:
    """The first are those of a channel that nobody has limited yet."""
    for place, line in enumerate([{"t": -NEVER}, *lines]):
        sure = (known.get((later["by"], later["number"])) for later in lines[place:])
        until = min((moment for moment in sure if moment is not None), default=NEVER)
        numbers = (line.get(name) for name in Terms._fields[2:])
        yield Terms(
            line["t"] - BLINK, until + BLINK, *(NEVER if n is None else float(n) for n in numbers)
        )


def _highest(terms: list[Terms], name: str, moment: float) -> float:
    held = [getattr(t, name) for t in terms if t.since <= moment <= t.until]
    return max(held, default=NEVER)


def rate_excess(books: Books) -> Evidence:
    """More starts in some window than burst + window x rate; where the policy never changed."""
    for channel, terms in _policies(books).items():
        if len(terms) == 2 and terms[1].rate < NEVER:
            excess = _excess([c.claimed for c in books.claims_in[channel]], terms[1])
            if excess > 0:
                yield f"{channel}: {excess:.1f} starts too many in a window"


def _excess(times: list[float], terms: Terms) -> float:
    """The worst window, in one pass: the one that ends here begins where k - rate x t was least."""
    worst, least = 0.0, NEVER
    for k, moment in enumerate(sorted(times)):
        level = k - terms.rate * moment
        least = min(least, level)
        worst = max(worst, level - least + 1 - terms.burst - 0.002 * terms.rate)
    return worst


def backlog(books: Books) -> Evidence:
    """A message that a full channel took, or that a channel with room refused."""
    spans: dict[str, list[tuple[Line, float, float]]] = defaultdict(list)
    for n, line in books.published.items():
        spans[books.tried[n]["channel"]].append((line, books.tried[n]["t"], books.gone_at(line)))
    seen = {line["id"]: books.seen_gone(line) for line in books.published.values()}
    # A publisher that was killed before it heard the answer may have published too.
    unsure = books.tried.keys() - books.published.keys() - books.undone
    unsure -= {line["n"] for line in books.by_what["publish_refused"]}
    for channel, terms in _policies(books).items():
        if len(terms) != 2 or terms[1].backlog == NEVER:
            continue
        most, found = terms[1].backlog, spans[channel]
        for line, tried, _ in found:
            there = [
                1 for other, _, gone in found if other["t"] < tried and gone > line["t"] + BLINK
            ]
            if len(there) >= most:
                yield f"{channel}: message {line['id']} was taken beside {len(there)}"
        maybe = sum(books.tried[n]["channel"] == channel for n in unsure)
        for line in books.by_what["publish_refused"]:
            asked = books.tried[line["n"]]
            there = [
                1
                for other, begun, _ in found
                if begun < line["t"] and seen[other["id"]] > asked["t"] - BLINK
            ]
            if asked["channel"] == channel and len(there) + maybe < most:
                yield f"{channel}: {line['n']} was refused beside {len(there)}"


def priorities(books: Books) -> Evidence:
    """Lower ones begun before higher ones that waited, more often than the one in ten that may."""
    ranked: dict[str, list[tuple[Claim, Line, Line]]] = defaultdict(list)
    for n, line in books.published.items():
        claims = books.claims_of[line["id"]]
        if books.tried[n].get("priority") is not None and claims:
            first = min(claims, key=lambda claim: claim.fence)
            ranked[first.channel].append((first, line, books.tried[n]))
    for channel, found in ranked.items():
        if channel in _policies(books) and len({tried["priority"] for _, _, tried in found}) > 1:
            passed = sum(any(_passed(low, high) for high in found) for low in found)
            if passed > 3 + len(found) / 5:
                yield f"{channel}: {passed} of {len(found)} began before a higher one that waited"


def _passed(low: tuple[Claim, Line, Line], high: tuple[Claim, Line, Line]) -> bool:
    """Both were there, if they were published together or the higher one long before."""
    together = low[2]["t"] <= high[2]["t"] + BLINK and low[1]["by"] == high[1]["by"]
    together = together and abs(low[1]["t"] - high[1]["t"]) < 0.01
    return (
        low[2]["priority"] < high[2]["priority"]
        and low[0].fence < high[0].fence
        and (together or high[1]["t"] < low[0].claimed - BLINK)
    )


def too_early(books: Books) -> Evidence:
    """A start before the message was due."""
    for n, line in books.published.items():
        tried = books.tried[n]
        for claim in books.claims_of[line["id"]][:1]:
            early = tried["t"] + tried.get("delay", 0.0) - claim.claimed
            if early > 0.01:
                yield f"message {claim.id} was claimed {early:.2f} s before it was due"
    delays = {
        (line["id"], line["fence"]): line.get("delay", 0.0)
        for line in books.by_what["settle_tried"]
        if line["verb"] == "defer"
    }
    for claims in books.claims_of.values():
        for first, second in pairwise(claims):
            early = first.ended + delays.get((first.id, first.fence), 0.0) - second.claimed
            # A dead letter waits for nothing but its redrive.
            if first.outcome in ("deferred", "retried") and not first.dead and early > 0.01:
                yield f"message {first.id} was claimed {early:.2f} s before it was due"


def clock(books: Books) -> Evidence:
    """A time in the tables at which that cannot have happened."""
    tried = {(x["id"], x["fence"], x["verb"]): x["t"] for x in books.by_what["settle_tried"]}
    for line in books.by_what["settle_accepted"]:
        asked = tried.get((line["id"], line["fence"], line["verb"]), -NEVER)
        for claim in books.claim_at.get((line["id"], line["fence"]), []):
            at = claim.ended if claim.outcome in OUTCOMES[line["verb"]] else asked
            if not asked - 0.01 <= at <= line["t"] + 0.01:
                yield f"message {claim.id} ended {claim.ended - line['t']:+.2f} s off its answer"
    for line in books.by_what["start"]:
        for claim in books.claim_at.get((line["id"], line["fence"]), []):
            after = claim.claimed - line["t"]
            if after > 0.01:
                yield f"message {claim.id} was claimed {after:.2f} s after its start"


def states(books: Books) -> Evidence:
    """What a message had saved is not what it finds at its next start."""
    tries: dict[tuple[int, int], list[int | None]] = defaultdict(list)
    for line in books.by_what["settle_tried"]:
        if line["verb"] == "defer":
            tries[line["id"], line["fence"]].append(line.get("saves"))
    found = {(line["id"], line["fence"]): line.get("done", 0) for line in books.by_what["start"]}
    for id, claims in books.claims_of.items():
        saved = {0}
        for claim in claims:
            done = found.get((id, claim.fence))
            if done is not None and done not in saved:
                yield f"message {id} had saved {sorted(saved)} and found {done}"
            if claim.outcome == "deferred":
                # Of several tries nobody knows which one counted; one without a state keeps it.
                mine = tries[id, claim.fence]
                kept = saved if None in mine or not mine else set()
                saved = kept | {save for save in mine if save is not None}


def zombies(books: Books) -> Evidence:
    """Somebody who went on for longer than a lease after his own was taken."""
    yield from [
        f"message {claim.id}: {claim.worker} went on for {seconds:.1f} s after lease {claim.fence}"
        for claim, seconds in overlaps(books)
        if seconds > books.dump["lease"]
    ]


def overlaps(books: Books) -> Iterator[tuple[Claim, float]]:
    """How long a handler went on beside the next one: since it could, and while it could know."""
    last = {(line["id"], line["fence"]): line["t"] for line in books.by_what["working"]}
    deaf = [f for f in books.by_what["fault"] if f["kind"] in ("server", "cut", "lock", "hog")]
    for lease, moment in last.items():
        for claim in books.claim_at.get(lease, []):
            woken = [
                line["t"]
                for line in books.by_what["resumed_process"]
                if line["target"] == claim.worker and line["t"] < moment
            ]
            since = max([claim.ended, *woken])
            if claim.outcome == "expired" and moment > since and not any(
                f["target"] in ("*", claim.worker) and f["t"] - BLINK < moment
                and f["t"] + f["span"] > since for f in deaf
            ):  # fmt: skip
                yield claim, moment - since


def late_starts(books: Books) -> Evidence:
    """A worker that began what it no longer held: it did not look at its clock."""
    for line in books.by_what["start"]:
        for claim in books.claim_at.get((line["id"], line["fence"]), []):
            after = line["t"] - claim.ended
            if line["by"].startswith("worker") and after > BLINK:
                yield f"message {claim.id} was begun {after:.2f} s after its lease had ended"


def order(books: Books) -> Evidence:
    """In channels of one at a time, what one producer published first is first begun."""
    published: dict[tuple[str, str], list[int]] = defaultdict(list)
    for line in books.by_what["publish_acknowledged"]:
        tried = books.tried[line["n"]]
        if tried.get("ordered") and line["status"] == "published":
            published[line["by"], tried["channel"]].append(line["id"])
    for ids in published.values():
        begun = [
            (min(books.claims_of[i], key=lambda c: c.fence), i) for i in ids if books.claims_of[i]
        ]
        for (first, one), (second, other) in pairwise(begun):
            if second.fence < first.fence:
                yield f"{first.channel}: message {other} began before {one}, its elder"


def paused_starts(books: Books) -> Evidence:
    """A claim from a channel that was paused for sure."""
    for channel, since, until in _pauses(books):
        for claim in books.claims_in[channel]:
            if since < claim.claimed < until - BLINK:
                yield f"{channel}: message {claim.id} was claimed while it was paused"


def _pauses(books: Books) -> Iterator[tuple[str, float, float]]:
    since: dict[str, float] = {}
    for line in books.lines:
        if line["what"] == "paused":
            since[line["channel"]] = line["t"]
        elif line["what"] == "resume_tried" and line["channel"] in since:
            yield line["channel"], since.pop(line["channel"]), line["t"]


def keys(books: Books) -> Evidence:
    """Two live messages of one key, or a key that outlives its message."""
    holders: dict[str, list[int]] = defaultdict(list)
    for line in books.by_what["publish_acknowledged"]:
        tried = books.tried[line["n"]]
        key = tried.get("key")
        if key is None:
            continue
        if line["status"] == "published":
            for id in holders[key]:
                if tried["window"] or books.ended_at(id) > line["t"] + BLINK:
                    yield f"key {key}: message {line['id']} was published beside {id}"
            holders[key].append(line["id"])
        elif line["id"] not in books.known:
            yield f"key {key}: message {line['id']} holds it and is nowhere"
        elif not tried["window"] and any(
            books.seen_ended(row) < tried["t"] - BLINK for row in books.ends[line["id"]][:1]
        ):
            yield f"key {key}: message {line['id']} has ended and still holds it"


def expired_early(books: Books) -> Evidence:
    """A lease that was taken back before it ran out."""
    until: dict[tuple[int, int], float] = defaultdict(float)
    for line in books.by_what["extended"]:
        lease = line["id"], line["fence"]
        until[lease] = max(until[lease], line["until"])
    for claim in books.claims:
        least = max(claim.claimed + books.dump["lease"], until[claim.id, claim.fence])
        if claim.outcome == "expired" and claim.ended < least - 0.01:
            yield (
                f"message {claim.id}: lease {claim.fence} expired {least - claim.ended:.2f} s early"
            )


def expired_unexplained(books: Books) -> Evidence:
    """A lease that ran out though nothing had happened to its holder."""
    faults = books.by_what["fault"]
    started = {(line["id"], line["fence"]) for line in books.by_what["start"]}
    # Its outcome was on its way, and nobody extends what is about to end.
    ended = [*books.by_what["settle_tried"], *books.by_what["raised"]]
    started -= {(line["id"], line["fence"]) for line in ended}
    # A connection of the holder's own broke, perhaps long after the server had: it gave up.
    undone = {
        (line["id"], line["fence"]) for line in books.by_what["settle_unknown"] if "error" in line
    }
    yield from [
        f"message {claim.id}: lease {claim.fence} of {claim.worker} expired after "
        f"{claim.ended - claim.claimed:.1f} s, and nothing had happened to it"
        for claim in books.claims
        if claim.outcome == "expired"
        and (claim.id, claim.fence) not in undone
        and not any(_excuses(fault, claim, started) for fault in faults)
    ]


def _excuses(fault: Line, claim: Claim, started: set[tuple[int, int]]) -> bool:
    if fault.get("unstarted") and (claim.id, claim.fence) in started:
        return False
    return (
        fault.get("id") in (None, claim.id)
        and fault["target"] in ("*", claim.worker)
        and fault["t"] <= claim.ended + BLINK
        and fault["t"] + fault["span"] >= claim.claimed - BLINK
    )


def budget(books: Books) -> Evidence:
    """A dead letter before its attempts were used up, or a message that lives on after."""
    for id, rows in books.rows.items():
        most = books.tried.get(books.name_of.get(id, ""), {}).get("max_attempts", 0)
        spent = 0
        for row in rows if most else []:
            if row["outcome"] in ("deferred", "redriven"):
                spent = 0
            elif row["outcome"] in ("retried", "expired"):
                spent += 1
                if row["dead"] != (spent >= most):
                    fate = "died" if row["dead"] else "lives on"
                    yield f"message {id} {fate} after {spent} of {most} tries"


def cancelled(books: Books) -> Evidence:
    """What was cancelled has ended so, and was held by nobody."""
    for line in books.by_what["cancel_answered"]:
        outcomes = [row["outcome"] for row in books.ends[line["id"]]]
        if line["status"] == "cancelled" and outcomes != ["cancelled"]:
            yield f"message {line['id']} was cancelled and has ended as {outcomes}"
    for end in (end for ends in books.ends.values() for end in ends if end["fence"] is None):
        for claim in books.claims_of[end["message_id"]]:
            if claim.ended > end["ended_at"] + BLINK:
                yield f"message {claim.id} was {end['outcome']} under lease {claim.fence}"


def effects(books: Books) -> Evidence:
    """Effects in the same database: once if the message was completed with them, else never."""
    count = Counter(books.dump["effects"])
    yield from [
        f"the effect of {n} happened {times} times" for n, times in count.items() if times > 1
    ]
    for id, n in books.name_of.items():
        kind = books.tried.get(n, {}).get("kind")
        done = any(row["outcome"] == "completed" for row in books.ends[id])
        if kind == "effect" and done != (n in count):
            yield f"{n} was {'' if done else 'not '}completed, its effect says otherwise"


def sampled(books: Books) -> Evidence:
    """What the sampler saw in a snapshot while the run was on."""
    yield from [line["text"] for line in books.by_what["violation"]]


RULES: tuple[Callable[[Books], Evidence], ...] = (
    lost, unexpected, mixed_up, two_states, stuck, history, unexplained_duplicates, fences,
    stale_accepted, completed_unworked, wrongly_lost, over_limit, rate_excess, backlog, order,
    priorities, paused_starts, too_early, clock, keys, expired_early, expired_unexplained, budget,
    states, cancelled, effects, zombies, late_starts, sampled,
)  # fmt: skip


def figures(books: Books) -> dict[str, int]:
    """What the run was: how much of what there was to break."""
    starts = Counter(line["id"] for line in books.by_what["start"])
    outcomes = Counter(claim.outcome for claim in books.claims)
    return {
        "tried": len(books.tried),
        "acknowledged": len(books.by_what["publish_acknowledged"]),
        "unknown": len(books.by_what["publish_unknown"]),
        "rolled_back": len(books.undone),
        "starts": starts.total(),
        "duplicated": sum(n > 1 for n in starts.values()),
        "completed": outcomes["completed"],
        "expired": outcomes["expired"],
        "stale_refused": len(books.by_what["settle_lost"]),
        "dead": len(books.dead),
        "faults": sum(line["kind"] != "stall" for line in books.by_what["fault"]),
        "samples": sum(line["count"] for line in books.by_what["sampled"]),
    }


def kinds(books: Books) -> dict[str, int]:
    """How often what went wrong; stops in good order, old snapshots and stalls of the machine
    are no faults of ours."""
    lines = [line["kind"] for line in books.by_what["fault"]]
    lines += [line["what"] for line in books.by_what["term"] + books.by_what["snapshot"]]
    return dict(sorted(Counter(lines).items()))


def recovery(books: Books) -> dict[str, dict[str, Any]]:
    """Seconds from a fault to what must follow, with what we aim at."""
    lease = books.dump["lease"]
    return {
        "returned": _spread(_held_by_the_dead(books, lambda first, _: first.ended), lease + 1),
        "killed": _spread(_held_by_the_dead(books, lambda _, second: second.claimed), lease + 1),
        "server": _spread(_served_again(books), 5.0),
        "zombie": _spread((seconds for _, seconds in overlaps(books)), lease / 3),
    }


def _held_by_the_dead(books: Books, what: Callable[[Claim, Claim], float]) -> Iterator[float]:
    """From the end of a process to what became of its leases: those of the usual length, in
    channels where no limit holds that up."""
    ends = {
        fault["target"]: fault["t"]
        for fault in books.by_what["fault"]
        if fault["kind"] in ("kill", "exit")
    }
    longer = {(line["id"], line["fence"]) for line in books.by_what["extended"]}
    for claims in books.claims_of.values():
        for first, second in pairwise(claims):
            if (first.id, first.fence) in longer:
                continue
            killed = ends.get(first.worker, NEVER)
            if first.outcome == "expired" and first.channel.startswith("free") and (
                first.claimed < killed < first.ended
            ):  # fmt: skip
                yield what(first, second) - killed


def _served_again(books: Books) -> Iterator[float]:
    """From the server's return to the first claim."""
    times = sorted(claim.claimed for claim in books.claims)
    for line in books.by_what["server_back"]:
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


def check(lines: Iterable[Line], dump: dict[str, Any]) -> dict[str, Any]:
    """The verdict: ``broken`` has each broken rule with how often and some of the evidence."""
    books = Books(list(lines), dump)
    evidence = {rule.__name__: list(rule(books)) for rule in RULES}
    return {
        "good": not any(evidence.values()),
        "server": books.dump.get("server"),
        "figures": figures(books),
        "kinds": kinds(books),
        "recovery": recovery(books),
        "counts": {name: len(found) for name, found in evidence.items()},
        "broken": {name: found[:SHOWN] for name, found in evidence.items() if found},
        # No failure in n starts: the chance of one is below 3/n, with 95 % confidence.
        "bound": 3 / max(1, len(books.by_what["start"])),
    }


def read_ledgers(folder: Path) -> Iterator[Line]:
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
