"""For development: dev (database servers), demo, chaos and bench."""

import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.connect import open_config, settled
from laneway.cli.dialog import confirm
from laneway.cli.exits import CommandGroup
from laneway.cli.options import Json, Url, Yes
from laneway.cli.output import Column, emit, say, table

if TYPE_CHECKING:
    from laneway import Queue


app = typer.Typer(
    cls=CommandGroup,
    help="Run a database server for development.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Directory = Annotated[
    Path | None, typer.Option(help="Keep the data in this folder.", show_default=False)
]
Port = Annotated[
    int | None,
    typer.Option(
        min=1, max=65_535, help="Listen on this port; by default, that of the last start."
    ),
]
Temporary = Annotated[
    bool, typer.Option("--temporary", help="Use an empty database and delete it at the end.")
]


@app.command()
def postgresql(
    directory: Directory = None, port: Port = None, temporary: Temporary = False
) -> None:
    """Run PostgreSQL on 127.0.0.1, and print its DATABASE_URL.

    Data and port are kept between starts. Anyone on this machine can log in: do not keep real
    data in it.
    """
    _run("postgresql", directory, port, temporary)


@app.command()
def mariadb(directory: Directory = None, port: Port = None, temporary: Temporary = False) -> None:
    """Run MariaDB on 127.0.0.1, and print its DATABASE_URL.

    Needs the system's mariadb-server package. Data and port are kept between starts. Anyone on
    this machine can log in: do not keep real data in it.
    """
    _run("mariadb", directory, port, temporary)


def _run(database: str, directory: Path | None, port: int | None, temporary: bool) -> None:
    from laneway.dev.embedded.foreground import run_server

    raise typer.Exit(run_server(database, directory, port=port, temporary=temporary))


def demo(
    url: Annotated[
        str | None,
        typer.Option(
            help="Use this database instead, in a schema of its own that is removed at the end."
        ),
    ] = None,
    report: Annotated[bool, typer.Option(help="Build a report at the end.")] = True,
    spark: Annotated[
        bool, typer.Option("--spark", help="Read the history with Spark as well.")
    ] = False,
) -> None:
    """Show fairness, limits and recovery on a temporary server."""
    from laneway.dev.demo.__main__ import main

    raise typer.Exit(main(url, report=report, spark=spark))


def chaos(
    engine: Annotated[
        str, typer.Option(help="postgresql, sqlite or mariadb; a temporary one is created.")
    ] = "postgresql",
    seed: Annotated[int | None, typer.Option(help="Seed of the run; random by default.")] = None,
    seconds: Annotated[float, typer.Option(min=2, help="How long faults are injected.")] = 60,
    faults: Annotated[
        str | None,
        typer.Option(
            help="Only these faults, separated by commas: poison, kill, stop, term, cut, silent, "
            "idle, server, snapshot, lock; and only if named: disk (as root), promote."
        ),
    ] = None,
    through: Annotated[
        str | None,
        typer.Option(
            help="Connect through pgbouncer in transaction mode; pgbouncer-unannounced is the "
            "same without telling the client."
        ),
    ] = None,
    by_kind: Annotated[
        bool, typer.Option("--by-kind", help="Workers claim only some kinds of messages.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(
            help="Use this database instead, in a schema of its own that is removed at the end; "
            "the server is not harmed."
        ),
    ] = None,
    drain_timeout: Annotated[
        float,
        typer.Option(min=5, help="Seconds to finish the remaining messages after the last fault."),
    ] = 180,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the ledgers and the dump in this folder.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as one JSON object.")
    ] = False,
) -> None:
    """Inject faults, then check every guarantee."""
    from laneway.dev.chaos.command import main

    number = secrets.randbelow(1_000_000) if seed is None else seed
    kinds = None if faults is None else [kind.strip() for kind in faults.split(",")]
    terms = (engine, number, seconds, url, json, keep, drain_timeout, kinds, through, by_kind)
    raise typer.Exit(main(*terms))


_CHANNELS = 100
_SINGLE = 200


def bench(
    messages: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Number of messages.")
    ] = 20_000,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Messages per call.")] = 100,
    size: Annotated[int, typer.Option(min=1, max=1_000_000, help="Payload size in bytes.")] = 200,
    yes: Yes = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Measure throughput on your database from this machine.

    Uses a schema of its own, which is dropped afterwards.
    """
    from secrets import token_hex

    from laneway.drivers.errors import masked

    config = replace(settled(url, None), schema=f"laneway_bench_{token_hex(4)}")
    assert config.url is not None
    where = f"{masked(config.url)}, schema {config.schema}"
    confirm(f"Publish and complete {messages:,} messages at {where}, then drop it?", yes)
    with open_config(config) as client:
        try:
            client.install()
            rates = measured(client, messages, batch, bytes(size))
        finally:
            _drop(client)
    if as_json:
        emit({"messages": messages, "batch": batch, "payload_bytes": size, **rates})
    else:
        columns = (Column("step"), Column("messages/s", right=True))
        table(columns, [(name, f"{rate:,.0f}") for name, rate in rates.items()])
        say("Measured with one process and one connection; results vary with machine and load.")


def measured(client: "Queue", messages: int, batch: int, payload: bytes) -> dict[str, float]:
    """Messages per second of each step."""
    return {
        "publish_single": _rate(_SINGLE, lambda: _publish_single(client, payload)),
        "publish_batch": _rate(messages, lambda: _publish(client, messages, batch, payload)),
        "claim_complete": _rate(messages + _SINGLE, lambda: _drain(client, batch)),
    }


def _rate(count: int, work: Any) -> float:
    start = time.perf_counter()
    work()
    return round(count / (time.perf_counter() - start), 1)


def _publish_single(client: "Queue", payload: bytes) -> None:
    for number in range(_SINGLE):
        client.publish(payload, channel=f"c{number % _CHANNELS}")


def _publish(client: "Queue", messages: int, batch: int, payload: bytes) -> None:
    from laneway import NewMessage

    for start in range(0, messages, batch):
        numbers = range(start, min(start + batch, messages))
        client.publish_many([NewMessage(payload, channel=f"c{n % _CHANNELS}") for n in numbers])


def _drain(client: "Queue", batch: int) -> None:
    while claim := client.claim(batch):
        client.complete(claim)


def _drop(client: "Queue") -> None:
    from laneway.errors import SchemaMissing

    try:
        client.uninstall()
    except SchemaMissing:
        say("Nothing was installed, so there is nothing to drop.")
