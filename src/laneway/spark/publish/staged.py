"""What tasks of a bulk publish report to the driver."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage


@dataclass
class Staged(WriterCommitMessage):
    """The staging table of one task; ``table`` is None if it had no rows."""

    job: str
    table: str | None
    rows: int
    query: str | None = None
    batch: int | None = None


@dataclass
class Loaded(WriterCommitMessage):
    """The parts that one task of a frame has loaded."""

    parts: list[int]
    rows: int


Messages = Sequence[WriterCommitMessage | None]


def loaded_parts(messages: Messages) -> list[int]:
    return [part for one in messages if isinstance(one, Loaded) for part in one.parts]


def staged_parts(messages: Messages) -> list[Staged]:
    return [message for message in messages if isinstance(message, Staged)]
