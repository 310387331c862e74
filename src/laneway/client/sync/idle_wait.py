"""How readers rest between two looks: for a while, because bells ring in event loops only."""

from time import sleep as pause

from laneway.client.shared.options import ClientAddress

from .core import Core

__all__ = ["IdleWait", "pause"]

# Seconds.
_FIRST = 0.01
_MOST = 0.25


class IdleWait:
    """The rest of one reader."""

    def __init__(self, core: Core, address: ClientAddress) -> None:
        """Needs neither; see the other world's."""

    def until_next(self, mailbox: str, idle: float) -> None:
        """After a look that brought nothing, ``idle`` seconds after the last that did."""
        pause(min(max(idle / 4, _FIRST), _MOST))

    def found(self) -> None:
        """After a look that brought something: nothing to do."""

    def close(self) -> None:
        """Nothing is open."""
