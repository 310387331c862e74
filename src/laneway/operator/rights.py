"""Who acts, what they may do, and which channels they see."""

from dataclasses import dataclass
from enum import StrEnum

from laneway.errors import InvalidOption


class Right(StrEnum):
    """What a verb of the operator needs; every verb needs exactly one."""

    VIEW = "view"
    """Counts, lists, messages without payloads, history."""
    VIEW_PAYLOADS = "view_payloads"
    VIEW_AUDIT = "view_audit"
    PAUSE = "pause"
    """Pause and resume channels, queues and kinds."""
    LIMIT = "limit"
    REMOVE = "remove"
    """Remove channels."""
    CANCEL = "cancel"
    RUN_NOW = "run_now"
    REDRIVE = "redrive"
    DISCARD = "discard"
    PUBLISH = "publish"
    SCHEDULES = "schedules"
    """Pause, resume, run and remove schedules."""
    TOPICS = "topics"
    """Subscribe and unsubscribe queues."""
    SETTINGS = "settings"
    """Change the settings of the schema, and run upkeep."""


VIEWER = frozenset({Right.VIEW})
"""Looks at everything but payloads and the audit."""
OPERATOR = VIEWER | {
    Right.VIEW_PAYLOADS,
    Right.PAUSE,
    Right.LIMIT,
    Right.CANCEL,
    Right.RUN_NOW,
    Right.REDRIVE,
    Right.SCHEDULES,
}
"""Also does what can be undone, and cancels."""
ADMIN = frozenset(Right)
"""Everything."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who looks or acts, by the name that the audit shows.

    With ``channel_prefixes`` they see and touch only channels whose name begins with one of them,
    in every queue; None means every channel.

    >>> Principal("ann", OPERATOR, channel_prefixes=("tenant-42/",))
    """

    name: str
    rights: frozenset[Right] = VIEWER
    channel_prefixes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidOption("a principal needs a name: the audit shows it")
        prefixes = self.channel_prefixes
        if isinstance(prefixes, str) or (prefixes is not None and not all(prefixes)):
            raise InvalidOption(
                "channel_prefixes must be a tuple of texts that are not empty, or None for all"
            )
        object.__setattr__(self, "rights", frozenset(map(Right, self.rights)))
        if prefixes is not None:
            object.__setattr__(self, "channel_prefixes", tuple(prefixes))

    @property
    def scoped(self) -> bool:
        """Whether some channels are hidden."""
        return self.channel_prefixes is not None

    def sees(self, channel: str) -> bool:
        """Whether the channel is within the scope."""
        prefixes = self.channel_prefixes
        return prefixes is None or channel.startswith(prefixes)


def admin(name: str) -> Principal:
    """Somebody who may do everything, such as whoever has the command line and the database."""
    return Principal(name, ADMIN)
