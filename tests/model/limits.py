"""Rules about limits that channels share, for the machine; and that nothing waits forever."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from laneway import NewMessage
from laneway.errors import PublishRefused
from tests.model.machine import clients, kinds, micros

SHARED: dict[str, tuple[int | None, float | None]] = {"api": (2, None), "pace": (None, 3.0)}


def limited(machine: Any) -> type[RuleBasedStateMachine]:
    """The same machine with shared limits."""

    class Limited(machine):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            for name, limits in SHARED.items():
                self.set_limit(0, name, limits)

        @rule(
            client=clients,
            channel=st.sampled_from(["left", "left", "right", "small"]),
            count=st.integers(1, 5),
            kind=kinds,
            limits=st.sampled_from([("api",), ("pace",), ("api", "pace")]),
        )
        def publish_limited(
            self, client: int, channel: str, count: int, kind: str, limits: tuple[str, ...]
        ) -> None:
            """Behind limits that other channels share."""
            new = [NewMessage(b"x", kind=kind, limits=limits)] * count
            try:
                answers = self.clients[client].publish_many(new, channel=channel)
            except PublishRefused as refused:
                answers = list(refused.results)
            for answer in answers:
                message, _ = self.draft(channel, 0, None, 20, kind)
                message.limits = limits
                self.model.publish(answer.id, answer.status, message)

        @rule(
            client=clients,
            name=st.sampled_from([*SHARED]),
            limits=st.sampled_from([*SHARED.values(), (1, 5.0), (4, None), (None, None)]),
        )
        def set_limit(
            self, client: int, name: str, limits: tuple[int | None, float | None]
        ) -> None:
            concurrency, rate = limits
            self.clients[client].limits[name].set(concurrency=concurrency, rate=rate)
            self.model.set_shared(name, concurrency, rate)

        @rule(client=clients, name=st.sampled_from([*SHARED]), seconds=st.sampled_from([1, 10]))
        def rest(self, client: int, name: str, seconds: int) -> None:
            self.clients[client].limits[name].rest(seconds)
            limit = self.model.shared[name]
            limit.rests_until = max(limit.rests_until, self.model.now + micros(seconds))

        @rule(client=clients)
        def drain(self, client: int) -> None:
            """Nothing that waits, for a limit or for its turn, is forgotten."""
            self.advance(60)
            self.upkeep(client)
            for _ in range(60):
                before = len(self.leases)
                self.claim(client, 30, 30, None)
                for lease in self.leases[before:]:
                    self.clients[client].complete([lease])
                    self.model.complete(lease.id)
                if not self.model.left():
                    return
                self.advance(2)
            raise AssertionError(f"nobody starts {self.model.left()}")

    return Limited
