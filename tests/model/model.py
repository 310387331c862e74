"""The promises, as a small program without a database: who may start, and what every verb does.

Times are in microseconds. What a promise leaves open (which channel is next, which of two claims
gets a message) the model leaves open too: it judges the answer of an engine instead of giving one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

SECOND = 1_000_000
BACKOFF_FIRST, BACKOFF_MOST = 1 * SECOND, 300 * SECOND

State = Literal["waiting", "leased", "dead", "ended"]


@dataclass
class Message:
    id: int
    channel: str
    priority: int
    due: int
    max_attempts: int
    expires_at: int | None = None
    key: str | None = None
    key_window: int | None = None
    state: State = "waiting"
    attempt: int = 0
    spent: int = 0
    fence: int = 0
    until: int = 0
    kind: str = ""
    late: bool = False
    """Committed so late that younger ones need not wait for it."""
    published_at: int = 0
    front: int | None = None
    """The message of its key that it waits behind, and when it is due once that has ended."""
    behind_due: int = 0
    limits: tuple[str, ...] = ()
    """The shared limits that it names."""

    @property
    def order(self) -> tuple[int, int, int]:
        return -self.priority, self.due, self.id


@dataclass
class Channel:
    concurrency: int | None = None
    rate: float | None = None
    burst: int = 0
    backlog: int | None = None
    paused: bool = False
    closing: bool = False
    starts: list[int] = field(default_factory=list)
    """Under the rate that holds now."""
    full_at: int = 0
    """From then on every start of the past is forgiven."""


@dataclass
class Node:
    """A message of a flow; ``after``: whom it still waits for."""

    message: Message
    after: set[int]
    when: str
    missed: bool = False


@dataclass
class SharedLimit:
    concurrency: int | None = None
    rate: float | None = None
    burst: int = 0
    rests_until: int = 0
    starts: list[int] = field(default_factory=list)
    """Under the rate that holds now."""


class Broken(AssertionError):
    """An engine broke a promise."""


def must(truth: bool, *words: object) -> None:
    if not truth:
        raise Broken(" ".join(map(str, words)))


class Model:
    """One queue."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.messages: dict[int, Message] = {}
        self.channels: dict[str, Channel] = {}
        self.keys: dict[str, tuple[int, int | None]] = {}
        self.fence = 0
        self.held: dict[int, Node] = {}
        self.shared: dict[str, SharedLimit] = {}
        self.with_limits: set[str] = set()
        """Channels in which messages have named shared limits."""

    # Publishing.

    def publish(self, id: int | None, status: str, draft: Message) -> None:
        expected, owner = self._publish_answer(draft)
        must(status == expected, "publish answered", status, "instead of", expected)
        if expected == "existing":
            must(id == owner, "the key belongs to", owner, "not to", id)
        elif expected == "published":
            must(id is not None and id not in self.messages, "message", id, "is not new")
            assert id is not None
            draft.id = id
            self.add(draft)

    def replace(self, id: int | None, status: str, draft: Message, bound: int | None) -> None:
        """A publish with a key mode; ``bound``: how long it is debounced at most."""
        assert draft.key is not None
        owner_id, until = self.keys.get(draft.key, (0, 0))
        if until is not None and until <= self.now:
            return self.publish(id, status, draft)
        owner = self.messages[owner_id]
        channel = self.channel(draft.channel)
        size = self.size(draft.channel)
        if until is not None or (owner.channel, owner.kind) != (draft.channel, draft.kind):
            expected = "existing"
        elif owner.state == "dead":
            owner.key = None
            del self.keys[draft.key]
            return self.publish(id, status, draft)
        elif channel.closing:
            expected = "closed"
        elif owner.state == "waiting":
            expected = "replaced"
            self._change(owner, draft, bound)
        elif channel.backlog is not None and size >= channel.backlog:
            expected = "full"
        else:
            draft.front, draft.behind_due = owner.id, draft.due
            must(status == "published" and id not in self.messages, "behind", owner.id, ":", status)
            assert id is not None
            draft.id = id
            return self.add(draft)
        must(status == expected, "a replacing publish answered", status, "instead of", expected)
        if expected in ("existing", "replaced"):
            must(id == owner.id, "the key belongs to", owner.id, "not to", id)
        return None

    def _change(self, message: Message, draft: Message, bound: int | None) -> None:
        message.priority, message.max_attempts = draft.priority, draft.max_attempts
        message.expires_at, message.key_window = draft.expires_at, draft.key_window
        message.spent = 0
        if bound is None or self.now >= message.published_at + bound:
            return
        due = min(draft.due, message.published_at + bound)
        if message.front is None:
            message.due = due
        else:
            message.behind_due = due

    def add(self, message: Message) -> None:
        message.published_at = self.now
        self.messages[message.id] = message
        if message.limits:
            self.with_limits.add(message.channel)
        if message.key is not None:
            self.keys[message.key] = message.id, None

    def _publish_answer(self, draft: Message) -> tuple[str, int | None]:
        if draft.key is not None and draft.key in self.keys:
            owner, until = self.keys[draft.key]
            if until is None or until > self.now:
                return "existing", owner
        channel = self.channel(draft.channel)
        if channel.closing:
            return "closed", None
        if channel.backlog is not None and self.size(draft.channel) >= channel.backlog:
            return "full", None
        return "published", None

    # Claiming.

    def claimable(self, name: str) -> list[Message]:
        """In the order in which they start."""
        found = [
            m
            for m in self.messages.values()
            if m.channel == name
            and m.state == "waiting"
            and m.front is None
            and m.due <= self.now
            and (m.expires_at is None or m.expires_at > self.now)
        ]
        return sorted(found, key=lambda m: m.order)

    def claim(
        self,
        taken: Sequence[tuple[int, int, int]],
        limit: int,
        lease: int,
        answer: str,
        all_seen: bool,
        at_once: bool,
        kinds: tuple[str, ...] | None = None,
    ) -> None:
        """``taken`` are ids, fences and attempts. ``all_seen``: nothing was left unread, so the
        order is strict and nothing that may start is left behind. ``at_once``: as it says."""
        must(len(taken) <= limit, "claimed", len(taken), "of", limit)
        must(bool(taken) == (answer == "got"), "answer", answer, "with", len(taken), "messages")
        names = {self.messages[id].channel for id, _, _ in taken if id in self.messages}
        for name in names:
            found = [self.messages[t[0]] for t in taken if self.messages[t[0]].channel == name]
            self._may_start(name, found, all_seen, kinds)
        self._limits_let([self.messages[id] for id, _, _ in taken])
        for id, fence, attempt in taken:
            message = self.messages[id]
            must(fence > message.fence, "fence", fence, "of", id, "did not rise")
            must(attempt == message.attempt + 1, "attempt", attempt, "after", message.attempt)
            message.state, message.fence, message.until = "leased", fence, self.now + lease
            message.late = False
            self.fence = max(self.fence, fence)
        for name in names:
            self._start(name, sum(self.messages[t[0]].channel == name for t in taken))
        if len(taken) < limit and (answer in ("empty", "blocked") or not at_once):
            for name in {m.channel for m in self.messages.values()}:
                self._nothing_left(name, answer, all_seen, kinds)

    def _may_start(
        self, name: str, found: list[Message], strict: bool, kinds: tuple[str, ...] | None
    ) -> None:
        channel, ready = self.channel(name), self.claimable(name)
        if kinds is not None:
            must({m.kind for m in found} <= set(kinds), "not of kinds", kinds, ":", found)
            if channel.concurrency != 1:
                ready = [m for m in ready if m.kind in kinds]
        for message in found:
            must(message in ready, "message", message, "may not start at", self.now)
        must(len({m.id for m in found}) == len(found), "a message twice")
        must(not channel.paused, name, "is paused")
        if channel.concurrency is not None:
            held = self.count(name, "leased") + len(found)
            must(held <= channel.concurrency, name, "has", held, "of", channel.concurrency)
        if channel.rate is not None:
            starts = channel.starts + [self.now] * len(found)
            for number, start in enumerate(starts):
                most = channel.burst + (self.now - start) / SECOND * channel.rate + 1e-6
                must(len(starts) - number <= most, name, "starts too fast:", starts[number:])
        if strict and name not in self.with_limits:
            must(_in_order(found, ready), name, "started", found, "of", ready)

    def _limits_let(self, found: Sequence[Message]) -> None:
        """All shared limits of what was started let it."""
        for name, limit in self.shared.items():
            new = sum(name in m.limits for m in found)
            if not new:
                continue
            leased = [m for m in self.messages.values() if m.state == "leased"]
            running = new + sum(name in m.limits for m in leased)
            must(running <= (limit.concurrency or running), "limit", name, "has", running)
            must(limit.rests_until <= self.now, "limit", name, "rests")
            if limit.rate is not None:
                limit.starts += [self.now] * new
                for number, start in enumerate(limit.starts):
                    most = limit.burst + (self.now - start) / SECOND * limit.rate + 1e-6
                    must(len(limit.starts) - number <= most, "limit", name, "starts too fast")

    def set_shared(self, name: str, concurrency: int | None, rate: float | None) -> None:
        limit = self.shared.setdefault(name, SharedLimit())
        limit.concurrency = concurrency
        if rate != limit.rate:
            # Of starts under another rate only this is kept: that the burst is used up.
            limit.starts = []
        limit.rate, limit.burst = rate, 1 if rate is None else max(1, int(-(-rate // 1)))

    def _start(self, name: str, count: int) -> None:
        channel = self.channel(name)
        if channel.rate is not None:
            channel.starts += [self.now] * count
            step = count / channel.rate * SECOND + 1
            channel.full_at = int(max(channel.full_at, self.now) + step)

    def _nothing_left(
        self, name: str, answer: str, all_seen: bool, kinds: tuple[str, ...] | None
    ) -> None:
        """Who answers that there is no more must be right."""
        channel = self.channel(name)
        if name in self.with_limits and channel.rate is not None:
            return  # what was put back has used up a start
        ready = [m for m in self.claimable(name) if not m.limits]
        if kinds is not None:
            if channel.concurrency == 1 and any(m.kind not in kinds for m in ready):
                return  # another kind may come first
            ready = [m for m in ready if m.kind in kinds]
        if not ready:
            return
        full = channel.concurrency is not None and (
            self.count(name, "leased") >= channel.concurrency
        )
        slow = channel.rate is not None and channel.full_at > self.now
        late = channel.rate is None and channel.full_at > self.now
        blocked = channel.paused or full or slow or late
        must(blocked or not all_seen, name, "has", len(ready), "left and the answer is", answer)
        must(answer != "empty" or not (channel.paused or full), name, "is blocked, not empty")

    def left(self) -> list[Message]:
        """What may start, sooner or later, while nobody holds anything."""
        names = {m.channel for m in self.messages.values()}
        free = [name for name in names if not self.channel(name).paused]
        return [message for name in free for message in self.claimable(name)]

    # Settling.

    def holds(self, id: int, fence: int) -> bool:
        message = self.messages.get(id)
        return message is not None and message.state == "leased" and message.fence == fence

    def complete(self, id: int) -> None:
        message = self.messages[id]
        message.attempt += 1
        self._end(message, "completed")

    def defer(self, id: int, due: int, failed: bool) -> str:
        message = self.messages[id]
        message.attempt += 1
        if failed and message.spent + 1 >= message.max_attempts:
            self._die(message)
            return "dead"
        message.spent = message.spent + 1 if failed else 0
        message.state, message.due = "waiting", due
        return "deferred"

    def fail(self, id: int) -> None:
        self.messages[id].attempt += 1
        self._die(self.messages[id])

    def extend(self, id: int, length: int) -> int:
        message = self.messages[id]
        message.until = max(message.until, self.now + length)
        return message.until

    def give_back(self, id: int, delay: int | None) -> None:
        message = self.messages[id]
        message.state = "waiting"
        if delay:
            message.due = self.now + delay

    def cancel(self, id: int) -> str:
        message = self.messages.get(id)
        if message is None or message.state == "ended":
            return "absent"
        if message.state == "waiting":
            self._end(message)
            return "cancelled"
        return message.state

    def redrive(self, id: int, max_attempts: int | None) -> bool:
        message = self.messages[id]
        if message.state != "dead":
            return False
        message.state, message.due, message.spent = "waiting", self.now, 0
        message.expires_at, message.published_at = None, self.now
        message.max_attempts = max_attempts or message.max_attempts
        return True

    def discard(self, id: int) -> bool:
        message = self.messages[id]
        if message.state != "dead":
            return False
        self._end(message)
        return True

    def _die(self, message: Message) -> None:
        """It keeps its key, unless another message has that by now."""
        message.state = "dead"
        self._decide(message.id, "dead")
        if self._start_behind(message):
            message.key = None

    def _start_behind(self, message: Message) -> bool:
        behind = [m for m in self.messages.values() if m.front == message.id]
        for other in behind:
            other.front, other.due = None, max(other.behind_due, self.now)
        return bool(behind)

    def _end(self, message: Message, outcome: str = "otherwise") -> None:
        message.state = "ended"
        self._decide(message.id, outcome)
        self._start_behind(message)
        if message.key is None or self.keys.get(message.key, (0, None))[0] != message.id:
            return
        if message.front is not None:
            self.keys[message.key] = message.front, None
            message.front = None
        elif message.key_window is None:
            del self.keys[message.key]
        else:
            self.keys[message.key] = message.id, self.now + message.key_window

    # Flows.

    def publish_flow(self, nodes: Sequence["Node"]) -> None:
        for node in nodes:
            if node.after:
                self.held[node.message.id] = node
            else:
                self.add(node.message)

    def _decide(self, parent: int, outcome: str) -> None:
        """Those who come after it; a dead one holds those who wait for its completion."""
        for id, node in list(self.held.items()):
            if parent not in node.after or (outcome == "dead" and node.when == "completed"):
                continue
            node.after.remove(parent)
            node.missed = node.missed or outcome != "completed"
            if node.after:
                continue
            del self.held[id]
            if {"completed": not node.missed, "failed": node.missed, "ended": True}[node.when]:
                node.message.due = self.now
                self.add(node.message)
            else:
                self._decide(id, "skipped")

    # Time and policies.

    def upkeep(self) -> None:
        for message in list(self.messages.values()):
            if message.state == "leased" and message.until <= self.now:
                wait = min(BACKOFF_MOST, BACKOFF_FIRST * 2 ** min(message.spent, 40))
                self.defer(message.id, self.now + wait, failed=True)
            past = message.expires_at is not None and message.expires_at <= self.now
            if message.state == "waiting" and past:
                self._end(message)
        self.keys = {k: v for k, v in self.keys.items() if v[1] is None or v[1] > self.now}
        for name, channel in list(self.channels.items()):
            if channel.closing and self.size(name) == 0:
                del self.channels[name]

    def limit(
        self,
        name: str,
        concurrency: int | None,
        rate: float | None,
        burst: int,
        backlog: int | None,
    ) -> None:
        channel = self.channel(name)
        channel.concurrency, channel.rate, channel.burst = concurrency, rate, burst
        channel.backlog, channel.closing, channel.starts = backlog, False, []

    def channel(self, name: str) -> Channel:
        return self.channels.setdefault(name, Channel())

    def count(self, name: str, state: State) -> int:
        return sum(m.channel == name and m.state == state for m in self.messages.values())

    def size(self, name: str) -> int:
        return self.count(name, "waiting") + self.count(name, "leased")


def _in_order(found: list[Message], ready: list[Message]) -> bool:
    """By priority, due time and publish order; one start in ten may go to the longest waiting."""
    wanted = {m.id for m in found}
    ready = [m for m in ready if not m.late or m.id in wanted]
    oldest = sorted(ready, key=lambda m: (m.due, m.id))
    for old in range((len(found) + 9) // 10 + 1):
        head = {m.id for m in oldest[:old]}
        rest = [m.id for m in ready if m.id not in head][: len(found) - len(head)]
        if wanted == head | set(rest):
            return True
    return False
