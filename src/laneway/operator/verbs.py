"""Who acts, what they may do, and which channels they see; and the table of verbs: which right each
one needs, and what a channel scope does to it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Concatenate, Literal, Never, ParamSpec, Protocol, TypeVar

from laneway.errors import InvalidOption, NotAllowed


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


class Acting(Protocol):
    """Whatever has verbs: somebody uses it."""

    @property
    def principal(self) -> Principal: ...


P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A", bound=Acting)

Scope = Literal["filtered", "checked", "refused", "open"]
"""What a verb does for a principal that sees only some channels.

- filtered: answers only with what is in these channels; the rest is as if it were not there
- checked: works on a channel that is named, and is refused for others
- refused: concerns all channels at once, so it is refused
- open: has nothing of any channel in it
"""

log = logging.getLogger("laneway.operator")


@dataclass(frozen=True, slots=True)
class Verb:
    """One method of Operator."""

    name: str
    right: Right
    scope: Scope
    acts: bool
    """Whether it changes anything; then it leaves a row in the audit."""


VERBS: dict[str, Verb] = {}
"""Every verb by its name; tests, pages and API go over it."""


def verb(
    right: Right, scope: Scope, *, acts: bool = False
) -> Callable[[Callable[Concatenate[A, P], T]], Callable[Concatenate[A, P], T]]:
    """Enters a method into the table, and checks the right before it runs."""

    def declare(method: Callable[Concatenate[A, P], T]) -> Callable[Concatenate[A, P], T]:
        entry = Verb(method.__name__, right, scope, acts)
        VERBS[entry.name] = entry

        @wraps(method)
        def checked(self: A, /, *args: P.args, **named: P.kwargs) -> T:
            check(self.principal, entry)
            return method(self, *args, **named)

        return checked

    return declare


def check(principal: Principal, entry: Verb) -> None:
    """Raises NotAllowed unless the principal has the verb's right, for as much as it touches."""
    if entry.right not in principal.rights:
        refuse(principal, entry.name, f"it needs the right {entry.right.value!r}")
    if entry.scope == "refused" and principal.scoped:
        refuse(principal, entry.name, "it concerns all channels, and some are hidden from you")


def refuse(principal: Principal, name: str, why: str) -> Never:
    """A refusal is logged, not audited: whoever may do nothing could else fill the table."""
    log.warning("refused %s to %r: %s", name, principal.name, why)
    raise NotAllowed(f"{principal.name!r} may not {name}: {why}")
