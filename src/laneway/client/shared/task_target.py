"""What the client's verbs know of a task: where its messages go."""

from typing import Any

from laneway.model import NewMessage


class TaskTarget:
    """The base of tasks. Verbs that take a queue and a kind, or a payload, take a task too."""

    @property
    def kind(self) -> str:
        raise NotImplementedError

    @property
    def queue(self) -> str | None:
        """None is the queue of the client that publishes."""
        raise NotImplementedError

    def message(self, *args: Any, **kwargs: Any) -> NewMessage:
        """A call of the task as a message that is not published yet."""
        raise NotImplementedError
