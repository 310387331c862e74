"""What tasks of a bulk publish tell the driver."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage


@dataclass
class Staged(WriterCommitMessage):
    """What one task brought; ``table`` is None if it had no rows."""

    job: str
    table: str | None
    rows: int
    query: str | None = None
    batch: int | None = None


Messages = Sequence[WriterCommitMessage | None]


def staged_parts(messages: Messages) -> list[Staged]:
    return [message for message in messages if isinstance(message, Staged)]
