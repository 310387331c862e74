"""Whether an idle connection has been ended from the other side: no round trip, one system call."""

import select
from typing import Any

# Seconds. A firewall that forgot a connection says so only when something is sent: what was idle
# for longer is asked by a round trip before it is used.
CHECK_AFTER = 5.0
# A connection that nobody needed for so long is closed.
KEEP_IDLE = 600.0

_ANYTHING = 1 | 8 | 16  # POLLIN, POLLERR, POLLHUP: named so on Unix only


def is_quiet(socket: Any) -> bool:
    """Nothing came on this socket (or its number). An idle connection has nothing to say but its
    end, and seldom a notice."""
    if socket is None:
        return False
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(socket, _ANYTHING)
            return not poll.poll(0)
        return not select.select([socket], [], [], 0)[0]
    except (OSError, ValueError):  # closed on our side
        return False
