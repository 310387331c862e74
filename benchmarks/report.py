"""Results as plain tables, or as JSON for machines."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Cell = str | int | float | None


@dataclass(slots=True)
class Table:
    """Named columns and rows; notes are printed below."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        self.rows.append(cells)

    def records(self) -> list[dict[str, Cell]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def verdict(value: float, least: float | None) -> str:
    """How a value stands to its target."""
    if least is None:
        return ""
    return "ok" if value >= least else "below"


def show(tables: Sequence[Table], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([_plain(table) for table in tables], indent=2))
        return
    for table in tables:
        print(f"\n{text(table)}", flush=True)


def text(table: Table) -> str:
    cells = [[_cell(cell) for cell in row] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(table.columns, *cells, strict=True)]
    left = [
        all(isinstance(row[number], str | None) for row in table.rows)
        for number in range(len(table.columns))
    ]
    lines = [
        "  ".join(
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in [list(table.columns), *cells]
    ]
    rule = "-" * max(map(len, lines))
    return "\n".join([table.title, rule, lines[0], rule, *lines[1:], *table.notes])


def _cell(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.2f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def _plain(table: Table) -> dict[str, Any]:
    return {**asdict(table), "rows": table.records()}
