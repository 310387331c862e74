"""Lanes: the kinds of a channel, for claims of some kinds. The channel's row is locked."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from laneway.engines.fairness import next_skips, start_order
from laneway.engines.mysql.base import text
from laneway.plan import Row

from .channel import (
    PARKED,
    ChannelVisit,
    DueMessage,
    Position,
    Positions,
    lowest_positions,
    positions_text,
    read_positions,
)
from .scan import UNSORTED

MANY = 1_000_000
"""How many messages a lane may have: that is not counted."""


def lane_of(kind: bytes) -> bytes:
    return b"=" + kind


def lane_of_message(message: DueMessage) -> bytes:
    return lane_of((text(message.rest[0]) or "").encode())


class MysqlLane:
    """One kind of a channel: the positions after which it has messages, and its turn."""

    def __init__(self, name: bytes, row: Row | None = None) -> None:
        self.name = name
        self.turn: int | None = None
        self.credit, self.skips = 0.0, 0
        self.positions: Positions = {}
        self.before: tuple[Any, ...] | None = None
        if row is not None:
            _, _, turn, credit, skips, positions, *_ = row
            self.turn, self.credit, self.skips = int(turn), float(credit), int(skips)
            self.positions = read_positions(positions)
            self.before = self.values()

    def lower(self, priority: int, position: Position) -> None:
        self.positions = lowest_positions(self.positions, [(priority, position)])

    def values(self) -> tuple[Any, ...]:
        return self.turn, self.credit, self.skips, positions_text(self.positions)


class LaneVisit(ChannelVisit):
    """``chosen``: the lanes that the claim may take from; None: it takes all kinds."""

    def __init__(self, row: Row, names: Sequence[bytes] | None, by_kind: bool) -> None:
        super().__init__(row)
        self.names = None if names is None else frozenset(names)
        self.by_kind = by_kind
        self.lanes: dict[bytes, MysqlLane] = {}
        self.held_until: int | None = None
        """Its next message is of another kind and must start first; until when at most."""
        self.started: list[DueMessage] = []

    @property
    def strict(self) -> bool:
        """Whether it starts one message at a time, in order over all kinds."""
        return self.names is not None and self.channel.concurrency == 1

    def lane(self, name: bytes) -> MysqlLane:
        return self.lanes.setdefault(name, MysqlLane(name))

    def add_lanes(self, rows: Iterable[Row]) -> None:
        for row in rows:
            _, name, *_ = row
            name = bytes(name)
            lane = MysqlLane(name, row)
            for priority, position in self.lane(name).positions.items():
                lane.lower(priority, position)
            self.lanes[name] = lane

    def chosen(self) -> list[MysqlLane]:
        """The lanes of these kinds that have messages, the one that has waited longest first."""
        lanes = [
            lane
            for name, lane in self.lanes.items()
            if lane.positions and name != UNSORTED and (self.names is None or name in self.names)
        ]
        return sorted(lanes, key=lambda lane: (lane.turn is None, lane.turn or 0, lane.name))

    def find_ring(self) -> None:
        """A claim of some kinds goes by the turns of their lanes."""
        if self.names is None:
            return
        lanes = self.chosen()
        self.turn, self.credit = (lanes[0].turn, lanes[0].credit) if lanes else (None, 0.0)

    @property
    def supply(self) -> int:
        if self.names is None:
            return super().supply
        return MANY if self.chosen() else 0

    def pick_lanes(self, found: Sequence[DueMessage]) -> list[DueMessage]:
        """Of up to ``taken`` + 1 messages of each lane and priority those that start; moves the
        lanes' positions."""
        lanes = self.chosen()
        skips = lanes[0].skips if lanes else 0
        priorities = {priority for lane in lanes for priority in lane.positions}
        by_position = sorted(found, key=attrgetter("position"))
        taken = list(by_position[: self.taken])
        if len(priorities) > 1:
            order = attrgetter("priority"), attrgetter("position")
            taken = start_order(found, self.taken, skips, *order)
        for lane in lanes:
            mine = [m for m in found if lane_of_message(m) == lane.name]
            ours = {m.id for m in taken}
            left: Positions = {}
            for priority, position in lane.positions.items():
                seen = [m for m in mine if m.priority == priority]
                started = [m.position for m in seen if m.id in ours]
                if len(seen) > len(started):
                    left[priority] = max(started, default=position)
            lane.positions = left
            lane.skips = next_skips(skips, len(taken)) if len(left) > 1 else 0
        return taken

    def _turn_of_channel(self, tat: int | None, now: int) -> int | None:
        """When the channel may start something, if not now."""
        channel = self.channel
        leased = self.leased + (len(self.started) if channel.concurrency is not None else 0)
        full = channel.concurrency is not None and leased >= channel.concurrency
        if channel.paused or full:
            return PARKED
        return None if self.rate is None else self.rate.open_at(tat, now)

    def channel_after(self, now: int) -> Row | None:
        """As row_after, for a claim of some kinds: the place in the ring of all kinds stays. What
        is known of the channel is in its lanes."""
        self.positions = {}
        for lane in self.lanes.values():
            self.positions = lowest_positions(self.positions, lane.positions.items())
        channel, started = self.channel, len(self.started)
        tat = None if self.rate is None else self.rate.after(started, channel.tat, now)
        leased = self.leased + (started if self.counted else 0)
        n = self.n - started
        turn: int | None = None
        if self.positions:
            kept = channel.turn if channel.turn is not None and channel.turn <= now else now
            turn = self._turn_of_channel(tat, now) or kept
        elif n > 0:
            turn = PARKED
        skips = channel.skips
        if self.strict and started:
            skips = next_skips(skips, started) if len(self.positions) > 1 else 0
        places = positions_text(self.positions)
        oldest = min((due for due, _ in self.positions.values()), default=None)
        new = (turn, n, leased, tat, channel.credit, skips)
        old = channel.turn, channel.n, channel.leased, channel.tat, channel.credit, channel.skips
        if (*new, places) == (*old, channel.places):
            return None
        return (channel.id, channel.queue, channel.name, *new, oldest, places)

    def move_lanes(self, now: int) -> None:
        """Gives the lanes their next turns."""
        channel = self.channel
        started = len(self.started)
        tat = None if self.rate is None else self.rate.after(started, channel.tat, now)
        closed = self._turn_of_channel(tat, now)
        for name, lane in self.lanes.items():
            if not lane.positions:
                continue
            kept = lane.turn if lane.turn is not None and lane.turn <= now else now
            served = name != UNSORTED and (self.names is None or name in self.names)
            if name == UNSORTED:
                lane.turn = now
            elif closed is not None:
                lane.turn, lane.credit = closed, 0.0
            elif self.held_until is not None and served:
                lane.turn, lane.credit = self.held_until, 0.0
            elif self.names is not None and served and not self.early:
                unreached = self.share.cut and not self.taken
                lane.turn = kept if self.share.cut else now
                lane.credit = lane.credit if unreached else self.share.credit
            else:
                lane.turn = kept

    def lanes_after(self) -> tuple[list[tuple[Any, ...]], list[tuple[bytes, bytes]]]:
        """The lanes to write, and those to delete."""
        changed = [lane for lane in self.lanes.values() if lane.values() != lane.before]
        write = [
            (self.channel.id, lane.name, self.channel.queue, *lane.values())
            for lane in changed
            if lane.positions
        ]
        gone = [
            (self.channel.id, lane.name)
            for lane in changed
            if not lane.positions and lane.before is not None
        ]
        return write, gone
