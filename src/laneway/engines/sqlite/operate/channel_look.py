"""A channel as a look finds it: its counts, its policy and why it waits."""

from typing import Any, NamedTuple

from laneway.engines.channel_pages import reason_to_wait
from laneway.engines.sqlite.channels import read_policy
from laneway.engines.times import moment
from laneway.inspection import ChannelInfo
from laneway.model import ChannelStats, Policy
from laneway.plan import Row

_POLICY = 12
"""The first column of the policy in a row of look_at_channels."""


class SqliteChannelLook(NamedTuple):
    """A row of look_at_channels, which counted up to ``most``. ``dead`` alone: a channel of which
    only dead letters are left."""

    id: int
    queue: str
    name: str
    waiting: int
    leased: int
    later: int
    due: int | None
    oldest: int | None
    dead: int
    split: int | None
    next_due: int | None
    open_at: int | None
    policy: Policy
    most: int

    @property
    def holds_anything(self) -> bool:
        return bool(self.waiting or self.leased or self.dead)

    def stats(self) -> ChannelStats:
        scheduled, exact = self._scheduled()
        waiting = self.waiting - scheduled
        oldest = moment(self.oldest) if waiting else None
        return ChannelStats(
            self.queue, self.name, waiting, scheduled, self.leased, self.dead, oldest, exact
        )

    def info(self, now: int) -> ChannelInfo:
        stats = self.stats()
        used_up = self.open_at is not None and self.open_at > now
        reason = reason_to_wait(self.policy, stats, used_up)
        return ChannelInfo(self.queue, self.name, stats, self.policy, reason)

    def _scheduled(self) -> tuple[int, bool]:
        """How many are scheduled, and whether that is exact: either these or those that are due
        were counted to the end. If neither was, what upkeep counted last."""
        if self.later < self.most or self.later == self.waiting:
            return self.later, True
        if self.due is not None and self.due < self.most:
            return self.waiting - self.due, True
        return min(self.later if self.split is None else self.split, self.waiting), False


def read_look(row: Row, most: int) -> SqliteChannelLook:
    values: tuple[Any, ...] = (*row[:_POLICY], read_policy(row[_POLICY:]), most)
    return SqliteChannelLook(*values)


def only_dead(queue: str, name: str, dead: int) -> SqliteChannelLook:
    return SqliteChannelLook(
        0, queue, name, 0, 0, 0, None, None, dead, None, None, None, Policy(), 1
    )
