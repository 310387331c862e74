"""What a channel that takes no more messages is answered with."""

from collections.abc import Sequence

from penstock.errors import BacklogFull, ChannelClosed, PublishRefused
from penstock.model import Published
from penstock.topic import Copy


def refusal(
    where: str, results: Sequence[Published] | Sequence[Copy], closed: bool
) -> PublishRefused:
    """The error to raise; ``where`` names the first channel that refused."""
    refused = sum(result.refused for result in results)
    count = f"{refused} of {len(results)} messages refused"
    if closed:
        return ChannelClosed(
            f"{where} is being removed, {count}: publish elsewhere or wait until it has drained",
            results,
        )
    return BacklogFull(
        f"{where} is full, {count}: publish later, or raise its backlog limit", results
    )
