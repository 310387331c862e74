"""Options that many commands share."""

from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option(
        envvar="DATABASE_URL",
        show_default=False,
        help="Where the queue lives: postgresql://…, mysql://…, sqlite:///…",
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        envvar="PENSTOCK_SCHEMA",
        show_default=False,
        help="The schema with Penstock's tables.  [default: penstock]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Answer as JSON: an object a line.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]

OnlyQueue = Annotated[
    str | None, typer.Option("--queue", "-q", help="Only this queue.", show_default=False)
]
OnlyChannel = Annotated[
    str | None, typer.Option("--channel", "-c", help="Only this channel.", show_default=False)
]
OnlyKind = Annotated[
    str | None, typer.Option("--kind", "-k", help="Only this kind.", show_default=False)
]
InQueue = Annotated[
    str | None,
    typer.Option(
        "--queue",
        "-q",
        envvar="PENSTOCK_QUEUE",
        show_default=False,
        help="The queue.  [default: default]",
    ),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many.")]
