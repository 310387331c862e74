"""Options shared by many commands."""

from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option(
        envvar="DATABASE_URL",
        show_default=False,
        help="The database: postgresql://…, mysql://… or sqlite:///…",
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        envvar="LANEWAY_SCHEMA",
        show_default=False,
        help="The schema of Laneway's tables.  [default: laneway]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

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
        envvar="LANEWAY_QUEUE",
        show_default=False,
        help="The queue's name.  [default: default]",
    ),
]
For = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="DURATION", help="End the pause after this, e.g. 30m.", show_default=False
    ),
]
Limit = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=10_000, help="Max number of results.")
]
