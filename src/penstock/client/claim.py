"""The answer to a claim."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TypeVar, overload

from penstock.model import Answer

M = TypeVar("M")


class Claim(Sequence[M]):
    """The claimed messages, why there are not more, and when to look again.

    ``look_again`` is None if nothing is known to come, and zero if more may be there at once.

    >>> claim = queue.claim(limit=10)
    >>> if not claim and claim.answer is Answer.BLOCKED: ...
    """

    __slots__ = ("_messages", "answer", "look_again")

    def __init__(self, messages: Sequence[M], answer: Answer, look_again: timedelta | None) -> None:
        self._messages = messages
        self.answer = answer
        self.look_again = look_again

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[M]:
        return iter(self._messages)

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[M]: ...
    def __getitem__(self, index: int | slice) -> M | Sequence[M]:
        return self._messages[index]

    def __repr__(self) -> str:
        return f"<Claim of {len(self)}: {self.answer}, look again in {self.look_again}>"
