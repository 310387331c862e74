"""Run a worker until nothing is left to claim."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.worker.worker import Worker


def drain(worker: "Worker") -> None:
    """Handles everything that is due, and what that publishes for now, then returns. What is
    deferred or retried later stays.

    >>> drain(worker)
    """
    worker.run(until_empty=True)


async def drain_async(worker: "Worker") -> None:
    """The same in a running event loop."""
    await worker.serve(until_empty=True)
