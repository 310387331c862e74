"""What a case expects to be refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

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
