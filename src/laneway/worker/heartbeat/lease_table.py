"""The layout of the leases that a worker holds, in memory shared with its heartbeat process.

A slot has two parts. The worker writes the first: number, message, fence, when the lease ends, and
until when it may be extended. The heartbeat process answers in the second: for which number, and
until when the lease is extended by the shared clock, or LOST. Reads may be torn: an answer counts
only for the number that it names, a number is never reused, and a wrong pair of message and fence
is refused by the fence.
"""

import struct
from typing import NamedTuple

SLOT = struct.Struct("=qqqddqd")
WORKER_PART = struct.Struct("=qqqdd")
ANSWER_PART = struct.Struct("=qd")
ANSWER_AT = WORKER_PART.size
NUMBER = struct.Struct("=q")  # of used slots at the start of the table; of a lease in its slot
FIRST = 64  # where the slots begin

LOST = -1.0

SHORT_LEASE = 10.0
"""In seconds: loading a driver and connecting may take a third of a shorter lease."""

# Seconds. A new connection takes its time on a busy machine; an open one answers soon or never.
_CONNECT_TIMEOUT = 3.0
_ANSWER_TIMEOUT = 1.0


class Lease(NamedTuple):
    slot: int
    number: int
    id: int
    fence: int
    until: float
    """When it ends, by the shared clock, as far as this table knows."""
    hold_until: float


def table_size(slots: int) -> int:
    return FIRST + slots * SLOT.size


def call_timeout(lease: float, connected: bool) -> float:
    """How long to wait for a call. When the network was silent and is back, a lease that was
    claimed since must outlive the call that is still waiting for its answer."""
    return max(lease / 4, _ANSWER_TIMEOUT if connected else _CONNECT_TIMEOUT)
