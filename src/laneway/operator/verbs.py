"""The table of verbs: which right each one needs, and what a channel scope does to it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, Literal, Never, ParamSpec, Protocol, TypeVar

from laneway.errors import NotAllowed

from .rights import Principal, Right


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
