"""All verbs in any order, against an engine and the model at once; every step is judged."""

import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from laneway import Message as Lease
from laneway import NewMessage, Policy
from laneway.errors import PublishRefused
from laneway.flow import When
from laneway.model import KeyScope
from tests.model.model import SECOND, Message, Model, Node, must
from tests.model.store import NAME, ModelStore, Transaction, open_client

CHANNELS = ["free", "one", "slow", "both", "small", "left", "right"]
POLICIES = {
    "one": Policy(concurrency=1),
    "slow": Policy(rate=2, burst=3),
    "both": Policy(concurrency=2, rate=5, burst=2),
    "small": Policy(concurrency=3, backlog=6),
}
# In the past: views and invariants read the database's own clock, and shall find all times behind.
START = datetime.now(UTC).replace(microsecond=0) - timedelta(days=100)

channels = st.sampled_from(CHANNELS)
kinds = st.sampled_from(["", "red", "blue"])
picks = st.integers(0, 1000)
clients = st.integers(0, 2)
seconds = st.sampled_from([0, 0.1, 0.5, 1, 2, 10, 31, 400])
delays = st.sampled_from([None, 0.5, 5, 40])
scopes: st.SearchStrategy[KeyScope] = st.sampled_from(["kind", "kind", "channel", "queue"])


def named(key: str, scope: KeyScope, channel: str, kind: str) -> str:
    """What is one key for the model."""
    return repr({"kind": (channel, kind, key), "channel": (channel, key), "queue": key}[scope])


def length(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def micros(value: float) -> int:
    return round(value * SECOND)


def machine(store: ModelStore) -> type[RuleBasedStateMachine]:
    """A state machine for this database."""

    class Verbs(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            store.reset()
            self.model = Model(0)
            self.clients = [open_client(store, self.time) for _ in range(3)]
            self.leases: list[Lease] = []
            self.flows = 0
            self.open: tuple[Transaction, list[Message]] | None = None
            for name, policy in POLICIES.items():
                self.set_policy(0, name, policy)

        def teardown(self) -> None:
            if self.open:
                self.open[0].close()

        def time(self) -> datetime:
            return START + timedelta(microseconds=self.model.now)

        def draft(
            self,
            channel: str,
            priority: int,
            delay: float | None,
            attempts: int,
            kind: str = "",
        ) -> tuple[Message, dict[str, Any]]:
            due = self.model.now + micros(delay or 0)
            message = Message(0, channel, priority, due, attempts, kind=kind)
            options = {
                "kind": kind,
                "channel": channel,
                "priority": priority,
                "delay": length(delay),
                "max_attempts": attempts,
            }
            return message, options

        # Publishing.

        @rule(
            client=clients,
            channel=channels,
            priority=st.sampled_from([0, 0, 0, 1, 60, 61, 200]),
            delay=delays,
            attempts=st.integers(1, 3),
            key=st.sampled_from([None, None, "k", "l"]),
            scope=scopes,
            window=st.sampled_from([None, 20]),
            expiry=st.sampled_from([None, None, 3, 60]),
            kind=kinds,
        )
        def publish(
            self,
            client: int,
            channel: str,
            priority: int,
            delay: float | None,
            attempts: int,
            key: str | None,
            scope: KeyScope,
            window: float | None,
            expiry: float | None,
            kind: str,
        ) -> None:
            message, options = self.draft(channel, priority, delay, attempts, kind)
            if key is not None:
                message.key, options["key"] = named(key, scope, channel, kind), key
                options["key_scope"] = scope
                if window is not None:
                    message.key_window, options["key_window"] = micros(window), length(window)
            if expiry is not None:
                lives = (delay or 0) + expiry
                message.expires_at = self.model.now + micros(lives)
                options["expires_in"] = length(lives)
            try:
                answer = self.clients[client].publish(b"x", **options)
            except PublishRefused as refused:
                (answer,) = refused.results
            self.model.publish(answer.id, answer.status, message)

        @rule(
            client=clients,
            channel=st.sampled_from(["free", "small"]),
            priority=st.sampled_from([0, 0, 100]),
            delay=st.sampled_from([0.5, 5]),
            attempts=st.integers(1, 2),
            key=st.sampled_from(["k", "l", "m"]),
            scope=scopes,
            bound=st.sampled_from([None, None, 5, 40]),
            expiry=st.sampled_from([None, None, 3]),
        )
        def replace(
            self,
            client: int,
            channel: str,
            priority: int,
            delay: float,
            attempts: int,
            key: str,
            scope: KeyScope,
            bound: float | None,
            expiry: float | None,
        ) -> None:
            later = delay if bound is not None else None
            message, options = self.draft(channel, priority, later, attempts)
            message.key = named(key, scope, channel, "")
            options |= {"key": key, "key_scope": scope}
            if expiry is not None:
                lives = (later or 0) + expiry
                message.expires_at = self.model.now + micros(lives)
                options["expires_in"] = length(lives)
            options["on_duplicate"] = "replace" if bound is None else "debounce"
            options["debounce_for"] = length(bound)
            try:
                answer = self.clients[client].publish(b"x", **options)
            except PublishRefused as refused:
                (answer,) = refused.results
            most = None if bound is None else micros(bound)
            self.model.replace(answer.id, answer.status, message, most)

        @rule(client=clients, channel=channels, count=st.integers(1, 12), kind=kinds)
        def publish_many(self, client: int, channel: str, count: int, kind: str) -> None:
            try:
                answers = self.clients[client].publish_many(
                    [NewMessage(b"x", kind=kind)] * count, channel=channel
                )
            except PublishRefused as refused:
                answers = list(refused.results)
            for answer in answers:
                message, _ = self.draft(channel, 0, None, 20, kind)
                self.model.publish(answer.id, answer.status, message)

        @rule(
            client=clients,
            attempts=st.integers(1, 2),
            when=st.sampled_from(["completed", "completed", "failed", "ended"]),
            last=st.sampled_from(["completed", "failed", "ended"]),
        )
        def flow(self, client: int, attempts: int, when: When, last: When) -> None:
            """Two messages, one after both, and one after that."""
            options: dict[str, Any] = {"channel": "free", "max_attempts": attempts}
            free = self.model.channel("free")
            room = free.backlog is None or self.model.size("free") + 2 <= free.backlog
            self.flows += 1
            try:
                with self.clients[client].flow(f"flow {self.flows}") as flow:
                    parents = [flow.add(b"x", **options) for _ in range(2)]
                    child = flow.add(b"x", after=parents, when=when, **options)
                    flow.add(b"x", after=child, when=last, **options)
            except PublishRefused:
                must(free.closing or not room, "a flow was refused")
                return
            must(room and not free.closing, "a flow was not refused")
            ids = [node.id for node in self.clients[client].flows.nodes(flow.id or 0)]
            messages = [self.draft("free", 0, None, attempts)[0] for _ in ids]
            for message, id in zip(messages, ids, strict=True):
                message.id = id
            after = [set[int](), set[int](), {*ids[:2]}, {ids[2]}]
            whens = ["completed", "completed", when, last]
            nodes = zip(messages, after, whens, strict=True)
            self.model.publish_flow([Node(*node) for node in nodes])

        @precondition(lambda self: store.open_transactions and self.open is None)
        @rule(client=clients, channel=channels, priority=st.sampled_from([0, 100]), delay=delays)
        def begin(self, client: int, channel: str, priority: int, delay: float | None) -> None:
            """A publish in a transaction that stays open for a while."""
            message, options = self.draft(channel, priority, delay, 2)
            transaction = store.begin()
            self.open = transaction, []
            with suppress(PublishRefused):
                answer = self.clients[client].publish(
                    b"x", connection=transaction.connection, **options
                )
                assert answer.id
                message.id = answer.id
                self.open[1].append(message)

        @precondition(lambda self: self.open is not None)
        @rule(commit=st.booleans())
        def end(self, commit: bool) -> None:
            assert self.open
            transaction, messages = self.open
            if commit:
                transaction.commit()
                for message in messages:
                    message.late = self.model.now > message.due + store.in_order_within * SECOND
                    self.model.add(message)
            transaction.close()
            self.open = None

        # Claiming.

        @rule(
            client=clients,
            limit=st.sampled_from([1, 2, 5, 30]),
            lease=st.sampled_from([5, 30]),
            kinds=st.sampled_from([None, None, ("red",), ("", "blue"), ("", "blue", "red")]),
        )
        def claim(self, client: int, limit: int, lease: int, kinds: tuple[str, ...] | None) -> None:
            queue = self.clients[client]
            if "claims by kind" in queue.database.engine.lacks:
                kinds = None
            all_seen = store.unread(self.time()) < limit + 10
            found = queue.claim(limit, lease=timedelta(seconds=lease), kinds=kinds)
            taken = [(m.id, m.fence, m.attempt) for m in found]
            at_once = found.look_again == timedelta(0)
            status = found.status.value
            self.model.claim(taken, limit, micros(lease), status, all_seen, at_once, kinds)
            self.leases += found

        @precondition(lambda self: self.model.held)
        @rule(client=clients, fails=st.booleans(), redrives=st.booleans())
        def end_parents(self, client: int, fails: bool, redrives: bool) -> None:
            """What flows wait for is claimed and ends, one of them perhaps otherwise."""
            self.claim(client, 30, 30, None)
            parents = {id for node in self.model.held.values() for id in node.after}
            for lease in [x for x in self.leases if x.id in parents and self._ours(x)]:
                if fails:
                    self.clients[client].fail([lease])
                    self.model.fail(lease.id)
                    if not redrives:
                        self.clients[client].dead_letters.discard([lease.id])
                        self.model.discard(lease.id)
                    fails = False
                else:
                    self.clients[client].complete([lease])
                    self.model.complete(lease.id)
            for id in parents & set(self.dead()) if redrives else ():
                self.clients[client].dead_letters.redrive([id])
                self.model.redrive(id, None)

        # Settling, by holders and by those who were.

        def lease(self, pick: int) -> tuple[Lease, bool]:
            lease = self.leases[-1 - pick % min(len(self.leases), 8)]
            return lease, self.model.holds(lease.id, lease.fence)

        @precondition(lambda self: self.leases)
        @rule(client=clients, pick=picks, more=st.integers(0, 3))
        def complete(self, client: int, pick: int, more: int) -> None:
            leases = {id(x): x for x, _ in (self.lease(pick + n) for n in range(more + 1))}
            held = [self.model.holds(x.id, x.fence) for x in leases.values()]
            answers = self.clients[client].complete(leases.values())
            must([not a.lost for a in answers] == held, "complete:", answers, "held:", held)
            for lease, ours in zip(leases.values(), held, strict=True):
                if ours:
                    self.model.complete(lease.id)

        @precondition(lambda self: self.leases)
        @rule(client=clients, pick=picks, delay=delays, failed=st.booleans())
        def defer(self, client: int, pick: int, delay: float | None, failed: bool) -> None:
            lease, ours = self.lease(pick)
            reason = "no" if failed else None
            (answer,) = self.clients[client].defer([lease], length(delay), reason=reason)
            expected = "lost"
            if ours:
                due = self.model.now + micros(delay or 0)
                expected = self.model.defer(lease.id, due, failed)
            must(answer.status == expected, "defer:", answer, expected)

        @precondition(lambda self: self.leases)
        @rule(client=clients, pick=picks)
        def fail(self, client: int, pick: int) -> None:
            lease, ours = self.lease(pick)
            (answer,) = self.clients[client].fail([lease])
            must(answer.lost != ours, "fail:", answer, ours)
            if ours:
                self.model.fail(lease.id)

        @precondition(lambda self: self.leases)
        @rule(client=clients, pick=picks, seconds=st.sampled_from([1, 50]))
        def extend(self, client: int, pick: int, seconds: int) -> None:
            lease, ours = self.lease(pick)
            (answer,) = self.clients[client].extend([lease], timedelta(seconds=seconds))
            must(answer.lost != ours, "extend:", answer, ours)
            if ours:
                until = START + timedelta(microseconds=self.model.extend(lease.id, micros(seconds)))
                must(answer.until == until, "extended until", answer.until, "not", until)

        @precondition(lambda self: self.leases)
        @rule(client=clients, pick=picks, delay=delays)
        def give_back(self, client: int, pick: int, delay: float | None) -> None:
            lease, ours = self.lease(pick)
            (answer,) = self.clients[client].give_back([lease], length(delay))
            must(answer.lost != ours, "give back:", answer, ours)
            if ours:
                self.model.give_back(lease.id, None if delay is None else micros(delay))

        @precondition(lambda self: self.leases)
        @rule(client=clients, pick=picks, verb=st.sampled_from(["complete", "give_back", "fail"]))
        def rolled_back(self, client: int, pick: int, verb: str) -> None:
            """Leaves nothing: neither the publish nor what was settled beside it."""
            lease, _ = self.lease(pick)
            mine = store.begin()
            try:
                self.clients[client].publish(b"x", channel="other", connection=mine.connection)
                getattr(self.clients[client], verb)([lease], connection=mine.connection)
            finally:
                mine.close()

        @precondition(lambda self: self.leases)
        @rule(client=clients, pick=picks, limit=st.sampled_from([1, 30]))
        def hand_over(self, client: int, pick: int, limit: int) -> None:
            """Given back and claimed again: the old holder does not know."""
            self.give_back(client, pick, None)
            self.claim((client + 1) % 3, limit, 30, None)

        def stale(self) -> list[Lease]:
            """Of those who think that they hold what another one holds now."""
            known = self.model.messages
            return [x for x in self.leases if known[x.id].state == "leased" and not self._ours(x)]

        def _ours(self, lease: Lease) -> bool:
            return self.model.holds(lease.id, lease.fence)

        @precondition(lambda self: self.stale())
        @rule(
            client=clients,
            pick=picks,
            verb=st.sampled_from(["complete", "defer", "fail", "extend", "give_back"]),
        )
        def settle_stale(self, client: int, pick: int, verb: str) -> None:
            found = self.stale()
            (answer,) = getattr(self.clients[client], verb)([found[pick % len(found)]])
            must(answer.lost, "a stale", verb, "was accepted:", answer)

        # Operators.

        def pick(self, pick: int) -> int | None:
            ids = list(self.model.messages)
            return ids[-1 - pick % min(len(ids), 12)] if ids else None

        @rule(client=clients, pick=picks)
        def cancel(self, client: int, pick: int) -> None:
            id = self.pick(pick) or 999_999_999
            (answer,) = self.clients[client].cancel([id])
            expected = self.model.cancel(id)
            must(answer.status == expected, "cancel:", answer, expected)

        def dead(self) -> list[int]:
            return [m.id for m in self.model.messages.values() if m.state == "dead"]

        @precondition(lambda self: self.dead())
        @rule(client=clients, pick=picks, attempts=st.sampled_from([None, 1, 5]))
        def redrive(self, client: int, pick: int, attempts: int | None) -> None:
            id = self.dead()[pick % len(self.dead())]
            done = self.clients[client].dead_letters.redrive([id, id], max_attempts=attempts)
            must(done == self.model.redrive(id, attempts), "redrive:", id, done)

        @precondition(lambda self: self.dead())
        @rule(client=clients, pick=picks)
        def discard(self, client: int, pick: int) -> None:
            id = self.dead()[pick % len(self.dead())]
            done = self.clients[client].dead_letters.discard([id])
            must(done == self.model.discard(id), "discard:", id, done)

        @rule(client=clients, name=channels, like=st.sampled_from([*CHANNELS, "free"]))
        def set_policy(self, client: int, name: str, like: str | Policy) -> None:
            policy = like if isinstance(like, Policy) else POLICIES.get(like, Policy())
            self.clients[client].set_policies({name: policy})
            self.model.limit(
                name, policy.concurrency, policy.rate, policy.burst or 0, policy.backlog
            )

        @rule(client=clients, name=channels, paused=st.sampled_from([True, False, False]))
        def pause(self, client: int, name: str, paused: bool) -> None:
            channel = self.clients[client].channel(name)
            if paused:
                channel.pause()
            else:
                channel.resume()
            self.model.channel(name).paused = paused

        @rule(client=clients, by=st.sampled_from(["time", "time", "starts"]))
        def set_fairness(self, client: int, by: Literal["starts", "time"]) -> None:
            """Whose turn it is is not modelled; that all else holds while it changes is."""
            fairness = self.clients[client].set_fairness(by)
            must(fairness.by == by, "fairness:", fairness)

        @rule(client=clients, name=channels)
        def remove(self, client: int, name: str) -> None:
            self.clients[client].channel(name).remove()
            self.model.channel(name).closing = True
            self.model.channel(name).paused = False

        # Time.

        @rule(seconds=seconds)
        def advance(self, seconds: float) -> None:
            self.model.now += micros(seconds)

        @rule(client=clients)
        def upkeep(self, client: int) -> None:
            must(self.clients[client].upkeep().ran, "upkeep did not run")
            self.model.upkeep()

        @precondition(lambda self: self.leases)
        @rule(client=clients)
        def crash(self, client: int) -> None:
            """Nobody settles or extends anything for a minute; then all that waits may start."""
            self.advance(60)
            self.upkeep(client)
            self.advance(60)
            self.claim(client, 30, 30, None)

        # What must hold after every step.

        @invariant()
        def tables_are_sound(self) -> None:
            found = store.violations(self.model.messages)
            must(not found, *found)

        @invariant()
        def numbers_are_right(self) -> None:
            numbers = self.clients[0].channel_stats(queue=NAME)
            found = {n.channel: (n.waiting + n.scheduled, n.leased, n.dead) for n in numbers}
            for name in CHANNELS:
                expected = tuple(
                    self.model.count(name, state) for state in ("waiting", "leased", "dead")
                )
                must(found.get(name, (0, 0, 0)) == expected, name, found.get(name), expected)

        @invariant()
        def policies_are_kept(self) -> None:
            name = random.Random(self.model.now).choice(CHANNELS)
            policy = self.clients[1].channel(name).policy()
            channel = self.model.channel(name)
            must(
                (policy.concurrency, policy.rate, policy.backlog, policy.paused, policy.closing)
                == (
                    channel.concurrency,
                    channel.rate,
                    channel.backlog,
                    channel.paused,
                    channel.closing,
                ),
                "policy of",
                name,
                policy,
                channel,
            )

    return Verbs
