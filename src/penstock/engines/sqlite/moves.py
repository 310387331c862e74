"""What a verb does to the counts of its channels, added up by channel."""

from .base import listed


class Moves:
    """Rows of move.sql: channel id, messages more, leases more, bands, earliest due."""

    def __init__(self) -> None:
        self._rows: dict[int, list[int | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self,
        channel_id: int,
        *,
        more: int = 0,
        leased: int = 0,
        priority: int = 0,
        due: int | None = None,
    ) -> None:
        row = self._rows.get(channel_id)
        if row is None:
            row = self._rows[channel_id] = [channel_id, 0, 0, 0, None]
        row[1] += more  # type: ignore[operator]
        row[2] += leased  # type: ignore[operator]
        if due is not None:
            row[3] |= 1 << priority  # type: ignore[operator]
            row[4] = due if row[4] is None else min(row[4], due)

    def listed(self) -> str:
        return listed(self._rows.values())
