"""Cases: a name, one sentence, and an async function that raises if the promise is broken.

What a case expects to be refused.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Generic, TypeVar

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
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    return list(_cases.values())


E = TypeVar("E", bound=BaseException)


class Caught(Generic[E]):
    """Holds the error once the block is left."""

    error: E


@contextmanager
def raises(kind: type[E]) -> Iterator[Caught[E]]:
    """The block must raise this kind of error.

    >>> with raises(LeaseLost) as caught:
    ...     await message.complete()
    """
    caught: Caught[E] = Caught()
    try:
        yield caught
    except kind as error:
        caught.error = error
    else:
        raise AssertionError(f"{kind.__name__} was not raised")
