"""Cases: a name, one sentence, and an async function that raises if the promise is broken."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .world import World

Body = Callable[["World"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """``name`` is the group (the verb) and the case: "claim: a lease has the length asked for"."""

    name: str
    body: Body

    @property
    def group(self) -> str:
        return self.name.partition(":")[0]


class CaseSkipped(Exception):
    """The engine or driver cannot show this; the text says why."""

    def __init__(self, reason: str) -> None:
        if not reason:
            raise ValueError("a skip needs a reason")
        super().__init__(reason)


_cases: dict[str, Case] = {}


def case(group: str, promise: str) -> Callable[[Body], Body]:
    """Registers a case.

    >>> @case("claim", "a lease has the length asked for")
    ... async def lease_length(world: World) -> None: ...
    """

    def register(body: Body) -> Body:
        found = Case(f"{group}: {promise}", body)
        if found.name in _cases:
            raise ValueError(f"two cases are named {found.name!r}")
        _cases[found.name] = found
        return body

    return register


def all_cases() -> list[Case]:
    """Every case, by file and then in the order in which it is written."""
    package = import_module(".cases", __package__)
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return list(_cases.values())
