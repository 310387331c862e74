"""dev: a database server for development."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Run a database server for development.", rich_markup_mode=None, no_args_is_help=True
)

Directory = Annotated[
    Path | None, typer.Option(help="Keep the data in this folder.", show_default=False)
]
Port = Annotated[
    int | None,
    typer.Option(
        min=1, max=65_535, help="Listen on this port. By default the port of the last start."
    ),
]
Temporary = Annotated[
    bool, typer.Option("--temporary", help="Use an empty database and delete it at the end.")
]


@app.command()
def postgresql(
    directory: Directory = None, port: Port = None, temporary: Temporary = False
) -> None:
    """Run PostgreSQL on 127.0.0.1 until Ctrl-C; prints its DATABASE_URL.

    Data and port are kept between starts. Anyone on this machine can log in: do not keep real
    data in it.
    """
    _run("postgresql", directory, port, temporary)


@app.command()
def mariadb(directory: Directory = None, port: Port = None, temporary: Temporary = False) -> None:
    """Run MariaDB on 127.0.0.1 until Ctrl-C; prints its DATABASE_URL.

    Needs the system's mariadb-server package. Data and port are kept between starts. Anyone on
    this machine can log in: do not keep real data in it.
    """
    _run("mariadb", directory, port, temporary)


def _run(database: str, directory: Path | None, port: int | None, temporary: bool) -> None:
    from laneway.dev.embedded.foreground import run_server

    raise typer.Exit(run_server(database, directory, port=port, temporary=temporary))
